// SPDX-License-Identifier: Apache-2.0
#include "binary/sections.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

namespace pyrometer {
namespace {

constexpr uint64_t kMaxSections = 65536;
constexpr uint64_t kMaxNameTable = uint64_t{4} << 20;
constexpr size_t kMaxSectionName = 256;
constexpr uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, newer than the <elf.h> of some distributions

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

bool HasGnuHeader(const Section& section) {
  return section.name.starts_with(".zdebug_");
}

// What GNU's tools wrote before ELF had compressed sections: "ZLIB", and the size in big-endian.
constexpr std::string_view kGnuMagic = "ZLIB";
constexpr size_t kGnuHeader = 12;

Result<std::vector<std::byte>> DecompressZstd(std::span<const std::byte> stream, size_t size) {
  std::vector<std::byte> out(size);
  const size_t written = ::ZSTD_decompress(out.data(), out.size(), stream.data(), stream.size());
  if (::ZSTD_isError(written) != 0 || written != size) {
    return Fail(ErrorCode::kMalformed, "a compressed section does not expand to {} bytes", size);
  }
  return out;
}

Result<std::vector<std::byte>> Decompress(const ElfFile& elf, const CompressedSection& section,
                                          size_t limit) {
  if (section.size > limit) {
    return Fail(ErrorCode::kExhausted, "a section of {} bytes when decompressed", section.size);
  }
  RETURN_IF_ERROR(CheckRatio(section));
  ASSIGN_OR_RETURN(std::vector<std::byte> stream,
                   ReadArray<std::byte>(elf.bytes(), section.offset, section.stored));
  switch (section.kind) {
    case ELFCOMPRESS_ZLIB:
      return Inflate(stream, section.size);
    case kZstd:
      return DecompressZstd(stream, section.size);
    default:
      return Fail(ErrorCode::kUnsupported, "section compression {}", section.kind);
  }
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

Result<CompressedSection> FindCompressed(const ElfFile& elf, const Section& section) {
  const Error malformed = Fail(ErrorCode::kMalformed, "section {} is not compressed", section.name);
  CompressedSection found{.kind = ELFCOMPRESS_ZLIB};
  size_t header_size = kGnuHeader;
  const uint64_t at = section.header.sh_offset;
  if (HasGnuHeader(section)) {
    ASSIGN_OR_RETURN(const auto header, ReadArray<char>(elf.bytes(), at, kGnuHeader));
    if (std::string_view(header.data(), kGnuMagic.size()) != kGnuMagic) return malformed;
    for (const char byte : std::span(header).subspan(kGnuMagic.size())) {
      found.size = found.size << 8 | static_cast<uint8_t>(byte);
    }
  } else {
    ASSIGN_OR_RETURN(const auto header, ReadObject<Elf64_Chdr>(elf.bytes(), at));
    header_size = sizeof(header);
    found.kind = header.ch_type;
    found.size = header.ch_size;
  }
  const bool fits = Within(at, section.header.sh_size, elf.bytes().size());
  if (!fits || section.header.sh_size < header_size) return malformed;
  found.offset = at + header_size;
  found.stored = section.header.sh_size - header_size;
  return found;
}

Result<void> CheckRatio(const CompressedSection& section) {
  // deflate cannot do better than 1032:1, so a larger claim would only cost memory. What zstd can
  // do is not bounded; the compilers' sections are below 50:1.
  constexpr uint64_t kBestRatio = 1032;
  if (section.size / kBestRatio <= section.stored) return {};
  return Fail(ErrorCode::kMalformed, "{} bytes cannot hold {}", section.stored, section.size);
}

bool IsCompressed(const Section& section) {
  return (section.header.sh_flags & SHF_COMPRESSED) != 0 || HasGnuHeader(section);
}

Result<std::vector<std::byte>> ReadSection(const ElfFile& elf, const Section& section,
                                           size_t limit) {
  if (section.header.sh_type == SHT_NOBITS) return std::vector<std::byte>();
  if (section.header.sh_size > limit) {
    return Fail(ErrorCode::kExhausted, "section {} of {} bytes", section.name,
                section.header.sh_size);
  }
  if (IsCompressed(section)) {
    ASSIGN_OR_RETURN(const CompressedSection compressed, FindCompressed(elf, section));
    return Decompress(elf, compressed, limit);
  }
  return ReadArray<std::byte>(elf.bytes(), section.header.sh_offset, section.header.sh_size);
}

}  // namespace pyrometer
