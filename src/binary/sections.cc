// SPDX-License-Identifier: Apache-2.0
#include "binary/sections.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

namespace pyrometer {
namespace {

constexpr uint64_t kMaxSections = 65536;
constexpr uint64_t kMaxNameTable = uint64_t{4} << 20;
constexpr size_t kMaxSectionName = 256;
// ELFCOMPRESS_ZSTD, which <elf.h> has since glibc 2.37.
constexpr uint32_t kElfCompressZstd = 2;

// The name at `offset` of a string table, cut to a sane length; "" if it is outside.
std::string NameAt(const std::vector<char>& strings, uint32_t offset) {
  if (offset >= strings.size()) return {};
  const size_t limit = std::min(strings.size() - offset, kMaxSectionName);
  return {strings.data() + offset, ::strnlen(strings.data() + offset, limit)};
}

// Counts that do not fit into the ELF header are in section 0.
Result<std::vector<Elf64_Shdr>> ReadHeaders(const ElfFile& elf) {
  const Elf64_Ehdr& header = elf.header();
  if (header.e_shoff == 0) return std::vector<Elf64_Shdr>();
  if (header.e_shentsize != sizeof(Elf64_Shdr)) {
    return Fail(ErrorCode::kMalformed, "section headers of {} bytes", header.e_shentsize);
  }
  uint64_t count = header.e_shnum;
  if (count == 0) {
    ASSIGN_OR_RETURN(const auto first, ReadObject<Elf64_Shdr>(elf.bytes(), header.e_shoff));
    count = first.sh_size;
  }
  if (count > kMaxSections) return Fail(ErrorCode::kMalformed, "{} sections", count);
  return ReadArray<Elf64_Shdr>(elf.bytes(), header.e_shoff, count);
}

Result<std::vector<char>> ReadNames(const ElfFile& elf, const std::vector<Elf64_Shdr>& headers) {
  const uint32_t index =
      elf.header().e_shstrndx == SHN_XINDEX ? headers.front().sh_link : elf.header().e_shstrndx;
  if (index == SHN_UNDEF || index >= headers.size()) return std::vector<char>();
  const Elf64_Shdr& names = headers[index];
  if (names.sh_type != SHT_STRTAB || names.sh_size > kMaxNameTable) {
    return Fail(ErrorCode::kMalformed, "section {} is no table of section names", index);
  }
  return ReadArray<char>(elf.bytes(), names.sh_offset, names.sh_size);
}

struct InflateEnd {
  void operator()(z_stream* stream) const { ::inflateEnd(stream); }
};

Result<std::vector<std::byte>> Inflate(std::span<std::byte> compressed, size_t size) {
  // zlib counts in 32 bits.
  if (std::max(compressed.size(), size) > std::numeric_limits<uInt>::max()) {
    return Fail(ErrorCode::kExhausted, "a compressed section of {} bytes", size);
  }
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return Fail(ErrorCode::kExhausted, "zlib: no memory");
  const std::unique_ptr<z_stream, InflateEnd> end(&stream);
  std::vector<std::byte> out(size);
  stream.next_in = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_in = static_cast<uInt>(compressed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(size);
  if (::inflate(&stream, Z_FINISH) != Z_STREAM_END || stream.avail_out != 0) {
    return Fail(ErrorCode::kMalformed, "a compressed section does not inflate to {} bytes", size);
  }
  return out;
}

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
};

// In one step, since linkers write several frames behind each other, and since then the window is
// the output itself: whatever window a frame claims, this takes 160 KB more.
Result<std::vector<std::byte>> InflateZstd(std::span<std::byte> compressed, size_t size) {
  const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(::ZSTD_createDCtx());
  if (context == nullptr) return Fail(ErrorCode::kExhausted, "zstd: no memory");
  std::vector<std::byte> out(size);
  const size_t written = ::ZSTD_decompressDCtx(context.get(), out.data(), out.size(),
                                               compressed.data(), compressed.size());
  if (::ZSTD_isError(written) != 0) {
    return Fail(ErrorCode::kMalformed, "a compressed section does not inflate to {} bytes: {}",
                size, ::ZSTD_getErrorName(written));
  }
  if (written != size) {
    return Fail(ErrorCode::kMalformed, "a compressed section has {} bytes, not {}", written, size);
  }
  return out;
}

// A way of compressing sections.
struct Compression {
  uint32_t type;        // ELFCOMPRESS_*
  uint64_t best_ratio;  // a larger claim would only cost memory
  Result<std::vector<std::byte>> (*inflate)(std::span<std::byte> compressed, size_t size);
};

constexpr Compression kCompressions[] = {
    // 258 bytes for two bits.
    {.type = ELFCOMPRESS_ZLIB, .best_ratio = 1032, .inflate = &Inflate},
    // A block of 128 KiB that is one byte again and again takes four.
    {.type = kElfCompressZstd, .best_ratio = 32768, .inflate = &InflateZstd}};

Result<std::vector<std::byte>> Decompress(std::span<std::byte> raw, size_t limit) {
  Elf64_Chdr header;
  if (raw.size() < sizeof(header)) return Fail(ErrorCode::kMalformed, "no compression header");
  std::memcpy(&header, raw.data(), sizeof(header));
  const auto* const known = std::ranges::find(kCompressions, header.ch_type, &Compression::type);
  if (known == std::end(kCompressions)) {
    return Fail(ErrorCode::kUnsupported, "section compression {}", header.ch_type);
  }
  if (header.ch_size > limit) {
    return Fail(ErrorCode::kExhausted, "a section of {} bytes when decompressed", header.ch_size);
  }
  const std::span<std::byte> stream = raw.subspan(sizeof(header));
  if (header.ch_size / known->best_ratio > stream.size()) {
    return Fail(ErrorCode::kMalformed, "{} bytes cannot hold {}", stream.size(), header.ch_size);
  }
  return known->inflate(stream, header.ch_size);
}

}  // namespace

Result<SectionTable> SectionTable::Read(const ElfFile& elf) {
  ASSIGN_OR_RETURN(const std::vector<Elf64_Shdr> headers, ReadHeaders(elf));
  SectionTable table;
  if (headers.empty()) return table;
  ASSIGN_OR_RETURN(const std::vector<char> names, ReadNames(elf, headers));
  table.sections_.reserve(headers.size());
  for (const Elf64_Shdr& header : headers) {
    table.sections_.push_back({.name = NameAt(names, header.sh_name), .header = header});
  }
  return table;
}

const Section* SectionTable::Find(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &Section::name);
  return found == sections_.end() ? nullptr : &*found;
}

const Section* SectionTable::FindType(uint32_t type) const {
  const auto found = std::ranges::find_if(
      sections_, [type](const Section& s) { return s.header.sh_type == type; });
  return found == sections_.end() ? nullptr : &*found;
}

const Section* SectionTable::At(uint32_t index) const {
  return index < sections_.size() ? &sections_[index] : nullptr;
}

Result<std::vector<std::byte>> ReadSection(const ElfFile& elf, const Section& section,
                                           size_t limit) {
  if (section.header.sh_type == SHT_NOBITS) return std::vector<std::byte>();
  if (section.header.sh_size > limit) {
    return Fail(ErrorCode::kExhausted, "section {} of {} bytes", section.name,
                section.header.sh_size);
  }
  ASSIGN_OR_RETURN(
      std::vector<std::byte> raw,
      ReadArray<std::byte>(elf.bytes(), section.header.sh_offset, section.header.sh_size));
  if ((section.header.sh_flags & SHF_COMPRESSED) == 0) return raw;
  return Decompress(raw, limit);
}

}  // namespace pyrometer
