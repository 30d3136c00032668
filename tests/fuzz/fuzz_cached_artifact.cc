// SPDX-License-Identifier: Apache-2.0
// A file of the cache: as it is, and with its digests, origin and sizes made right, which no fuzzer
// would find.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "indexer/cached_artifact.h"
#include "indexer/cached_artifact_format.h"
#include "symbolize/source_map.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

using namespace pyrometer;

constexpr size_t kHead = offsetof(CachedArtifactHeader, head);

const ArtifactOrigin& Origin() {
  static const ArtifactOrigin kOrigin{.file = BuildId(std::as_bytes(std::span("file", 4))),
                                      .maker = BuildId(std::as_bytes(std::span("maker", 5)))};
  return kOrigin;
}

Digest DigestOf(const KeyedDigest::Key& key, std::span<const std::byte> first,
                std::span<const std::byte> second = {}) {
  KeyedDigest digest(key);
  digest.Add(first);
  digest.Add(second);
  return digest.Finish();
}

// The rest is the reading, as far as the header's size of it says, and the artifact.
void MakeRight(std::vector<std::byte>& file) {
  CachedArtifactHeader header;
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  const auto rest = std::span(std::as_const(file)).subspan(sizeof(header));
  header.magic = kCachedArtifactMagic;
  header.kind = kCachedSources;
  header.build_id_size = static_cast<uint32_t>(Origin().file.bytes().size());
  header.build_id = {};
  header.maker = {};
  std::ranges::copy(Origin().file.bytes(), header.build_id.begin());
  std::ranges::copy(Origin().maker.bytes(), header.maker.begin());
  header.reading_size %= rest.size() + 1;
  header.artifact_size = rest.size() - header.reading_size;
  // As most readings have it: four numbers before the end.
  constexpr size_t kKeyBeforeEnd = 33;
  if (header.reading_size >= kKeyBeforeEnd) {
    const auto at = rest.subspan(header.reading_size - kKeyBeforeEnd);
    std::memcpy(&header.key, at.data(), sizeof(header.key));
  }
  header.artifact = DigestOf(header.key, rest.subspan(header.reading_size));
  header.head = DigestOf(header.key, std::as_bytes(std::span(&header, 1)).first(kHead),
                         rest.first(header.reading_size));
  std::memcpy(file.data(), &header, sizeof(header));
}

void ReadWhole(std::span<const std::byte> file) {
  Result<CachedSources> cached = CachedSources::Open(
      FuzzFile(reinterpret_cast<const uint8_t*>(file.data()), file.size()), Origin());
  if (!cached) return;
  Require(cached->reading().is_complete);
  for (const Reading::Piece& piece : cached->reading().pieces) {
    Require(piece.file < cached->reading().sizes.size());
  }
  const auto bytes = std::move(*cached).Bytes();
  if (!bytes) return;
  Require((*bytes)->size() < file.size());
  std::array<std::byte, 16> some{};
  Require(!(*bytes)->Read((*bytes)->size() - std::min<uint64_t>((*bytes)->size(), 15), some) ||
          (*bytes)->size() >= some.size());
  const Result<SourceMap> map = SourceMap::From(*bytes);
  for (uint64_t i = 0; map && i < 256; ++i) map->Find(ElfAddress(i * 61));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  ReadWhole(file);
  MakeRight(file);
  ReadWhole(file);
  return 0;
}
