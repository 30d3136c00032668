// SPDX-License-Identifier: Apache-2.0
#include "indexer/cached_artifact.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/system_error.h"
#include "indexer/artifact_codec.h"
#include "indexer/cached_artifact_format.h"
#include "indexer/flat_value.h"

namespace pyrometer {
namespace {

constexpr size_t kStep = size_t{256} << 10;

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::array<std::byte, BuildId::kMaxSize> Padded(const BuildId& id) {
  std::array<std::byte, BuildId::kMaxSize> padded{};
  std::ranges::copy(id.bytes(), padded.begin());
  return padded;
}

Digest HeadDigest(const CachedArtifactHeader& header, std::span<const std::byte> reading) {
  KeyedDigest digest(header.key);
  digest.Add(BytesOf(header).first(offsetof(CachedArtifactHeader, head)));
  digest.Add(reading);
  return digest.Finish();
}

Error Changed() {
  return Fail(ErrorCode::kMalformed, "it was cut or changed");
}

// Gives all bytes to `use`, piece by piece.
template <typename ReadPiece, typename Use>
Result<void> ForEachPiece(uint64_t size, ReadPiece read, Use use) {
  std::vector<std::byte> buffer(std::min<uint64_t>(size, kStep));
  for (uint64_t at = 0; at < size;) {
    const auto piece = std::span(buffer).first(std::min<uint64_t>(buffer.size(), size - at));
    RETURN_IF_ERROR(read(at, piece));
    RETURN_IF_ERROR(use(std::as_bytes(piece)));
    at += piece.size();
  }
  return {};
}

Result<void> Write(int fd, std::span<const std::byte> bytes) {
  return WriteAll(fd, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

class FileTail : public StoredBytes {
 public:
  FileTail(UniqueFd file, uint64_t at, uint64_t size)
      : file_(std::move(file)), at_(at), size_(size) {}
  bool Read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset) return false;
    return ReadAt(file_.get(), at_ + offset, out).has_value();
  }
  uint64_t size() const override { return size_; }
  size_t in_memory() const override { return 0; }
  uint64_t spilled() const override { return 0; }

 private:
  const UniqueFd file_;
  const uint64_t at_;
  const uint64_t size_;
};

}  // namespace

uint64_t CachedSizeFor(const Reading& reading, uint64_t size) {
  FlatWriter flat;
  Encode(reading, flat);
  return sizeof(CachedArtifactHeader) + flat.bytes().size() + size;
}

Result<void> WriteCachedSources(int fd, const ArtifactOrigin& origin, const Reading& reading,
                                const StoredBytes& bytes) {
  FlatWriter flat;
  Encode(reading, flat);
  CachedArtifactHeader header{
      .build_id_size = static_cast<uint32_t>(origin.file.bytes().size()),
      .build_id = Padded(origin.file),
      .maker = Padded(origin.maker),
      .key = reading.key,
      .reading_size = flat.bytes().size(),
      .artifact_size = bytes.size(),
  };
  // The header comes last, in the place that is left for it: so nothing is read twice.
  if (::lseek(fd, sizeof(header), SEEK_SET) < 0) return SystemError(errno, "lseek");
  RETURN_IF_ERROR(Write(fd, flat.bytes()));
  KeyedDigest digest(header.key);
  const auto read = [&bytes](uint64_t at, std::span<std::byte> out) -> Result<void> {
    if (bytes.Read(at, out)) return {};
    return Fail(ErrorCode::kIo, "what is to be kept cannot be read");
  };
  RETURN_IF_ERROR(ForEachPiece(bytes.size(), read, [&](std::span<const std::byte> piece) {
    digest.Add(piece);
    return Write(fd, piece);
  }));
  header.artifact = digest.Finish();
  header.head = HeadDigest(header, flat.bytes());
  if (::lseek(fd, 0, SEEK_SET) < 0) return SystemError(errno, "lseek");
  return Write(fd, BytesOf(header));
}

Result<CachedSources> CachedSources::Open(UniqueFd file, const ArtifactOrigin& origin) {
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return SystemError(errno, "fstat");
  const auto size = static_cast<uint64_t>(about.st_size);
  CachedArtifactHeader header;
  if (size < sizeof(header)) return Changed();
  RETURN_IF_ERROR(ReadAt(file.get(), 0, std::as_writable_bytes(std::span(&header, 1))));
  if (header.magic != kCachedArtifactMagic || header.kind != kCachedSources) {
    return Fail(ErrorCode::kMalformed, "it has another format");
  }
  if (header.maker != Padded(origin.maker)) {
    return Fail(ErrorCode::kMalformed, "another program made it");
  }
  if (header.build_id_size != origin.file.bytes().size() ||
      header.build_id != Padded(origin.file)) {
    return Fail(ErrorCode::kMalformed, "it was made of another file");
  }
  const uint64_t rest = size - sizeof(header);
  if (header.reading_size > std::min(rest, kMostOfCachedReading) ||
      header.artifact_size != rest - header.reading_size) {
    return Changed();
  }
  std::vector<std::byte> flat(header.reading_size);
  RETURN_IF_ERROR(ReadAt(file.get(), sizeof(header), flat));
  if (HeadDigest(header, flat) != header.head) return Changed();
  FlatReader in(flat);
  Result<Reading> reading = DecodeReading(in);
  if (!reading || !in.AtEnd() || !reading->is_complete) return Changed();
  return CachedSources(std::move(file), *std::move(reading),
                       {.at = sizeof(header) + header.reading_size,
                        .size = header.artifact_size,
                        .digest = header.artifact});
}

Result<std::shared_ptr<const StoredBytes>> CachedSources::Bytes() && {
  KeyedDigest digest(reading_.key);
  const auto read = [this](uint64_t at, std::span<std::byte> out) {
    return ReadAt(file_.get(), artifact_.at + at, out);
  };
  RETURN_IF_ERROR(ForEachPiece(artifact_.size, read,
                               [&digest](std::span<const std::byte> piece) -> Result<void> {
                                 digest.Add(piece);
                                 return {};
                               }));
  if (digest.Finish() != artifact_.digest) return Changed();
  return std::make_shared<const FileTail>(std::move(file_), artifact_.at, artifact_.size);
}

}  // namespace pyrometer
