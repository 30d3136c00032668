// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_data.h"

#include <lzma.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

constexpr size_t kMaxCompressed = size_t{16} << 20;
constexpr size_t kMaxImage = size_t{32} << 20;
// `xz -9` needs 65 MiB, of which only as much is touched as is put out.
constexpr uint64_t kMaxDecoderMemory = uint64_t{72} << 20;

struct LzmaEnd {
  void operator()(lzma_stream* stream) const { ::lzma_end(stream); }
};

Result<std::vector<std::byte>> Decompress(std::span<const std::byte> compressed) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (::lzma_stream_decoder(&stream, kMaxDecoderMemory, 0) != LZMA_OK) {
    return Fail(ErrorCode::kExhausted, "xz: no memory");
  }
  const std::unique_ptr<lzma_stream, LzmaEnd> end(&stream);
  stream.next_in = reinterpret_cast<const uint8_t*>(compressed.data());
  stream.avail_in = compressed.size();
  std::vector<std::byte> image;
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    if (image.size() == kMaxImage) {
      return Fail(ErrorCode::kExhausted, ".gnu_debugdata is larger than {} bytes", kMaxImage);
    }
    const size_t have = image.size();
    image.resize(std::min(std::max(have * 2, compressed.size() * 4), kMaxImage));
    stream.next_out = reinterpret_cast<uint8_t*>(image.data()) + have;
    stream.avail_out = image.size() - have;
    status = ::lzma_code(&stream, LZMA_FINISH);
    image.resize(image.size() - stream.avail_out);
  }
  if (status == LZMA_MEMLIMIT_ERROR || status == LZMA_MEM_ERROR) {
    return Fail(ErrorCode::kExhausted, ".gnu_debugdata needs too much memory");
  }
  if (status != LZMA_STREAM_END) {
    return Fail(ErrorCode::kMalformed, ".gnu_debugdata is no xz stream ({})",
                static_cast<int>(status));
  }
  return image;
}

}  // namespace

Result<ElfFile> ReadDebugData(const ElfFile& elf, const SectionTable& sections) {
  const Section* const section = sections.Find(".gnu_debugdata");
  if (section == nullptr) return Fail(ErrorCode::kNotFound, "no .gnu_debugdata");
  ASSIGN_OR_RETURN(const auto compressed, ReadSection(elf, *section, kMaxCompressed));
  ASSIGN_OR_RETURN(std::vector<std::byte> image, Decompress(compressed));
  return ElfFile::FromBytes(std::move(image));
}

}  // namespace pyrometer
