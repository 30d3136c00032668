// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_sections.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "binary/inflating_source.h"

namespace pyrometer {
namespace {

constexpr std::array<const char*, static_cast<size_t>(DwarfSection::kCount)> kNames = {
    "info", "abbrev", "line", "str", "line_str", "str_offsets", "addr", "ranges", "rnglists"};

// A part of another source, which outlives it.
class PartOf : public ByteSource {
 public:
  PartOf(const ByteSource& whole, uint64_t begin, uint64_t size)
      : whole_(whole), begin_(begin), size_(size) {}

  uint64_t size() const override { return size_; }
  Result<void> Read(uint64_t offset, std::span<std::byte> out) const override {
    if (!Within(offset, out.size(), size_)) {
      return Fail(ErrorCode::kMalformed, "a section ends before offset {:#x}", offset);
    }
    return whole_.Read(begin_ + offset, out);
  }

 private:
  const ByteSource& whole_;
  const uint64_t begin_;
  const uint64_t size_;
};

// Strings are read here and there; what else is large is read more or less from front to back.
constexpr uint64_t kLarge = uint64_t{16} << 20;

Result<std::unique_ptr<ByteSource>> Decompressed(const ElfFile& elf, const Section& section,
                                                 DwarfSection which, uint64_t& room) {
  ASSIGN_OR_RETURN(const CompressedSection compressed, FindCompressed(elf, section));
  const bool is_text = which == DwarfSection::kStr || which == DwarfSection::kLineStr;
  if (compressed.kind == ELFCOMPRESS_ZLIB && compressed.size > kLarge && !is_text) {
    return InflatingBytes(elf, section);
  }
  ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadSection(elf, section, room));
  room -= bytes.size();
  return MemoryBytes(std::move(bytes));
}

}  // namespace

Result<DwarfSections> DwarfSections::Open(const ElfFile& elf, const SectionTable& sections,
                                          const char* suffix) {
  DwarfSections all;
  uint64_t room = kMostDecompressed;
  for (size_t i = 0; i < kNames.size(); ++i) {
    const std::string name = std::string("debug_") + kNames[i] + suffix;
    const Section* section = sections.Find("." + name);
    // Before ELF had a flag for it, compressed sections had a name of their own.
    if (section == nullptr) section = sections.Find(".z" + name);
    if (section == nullptr || section->header.sh_type == SHT_NOBITS) {
      all.sources_[i] = MemoryBytes({});
    } else if (IsCompressed(*section)) {
      ASSIGN_OR_RETURN(all.sources_[i],
                       Decompressed(elf, *section, static_cast<DwarfSection>(i), room));
    } else {
      const uint64_t begin = std::min(section->header.sh_offset, elf.bytes().size());
      const uint64_t size = std::min(section->header.sh_size, elf.bytes().size() - begin);
      all.sources_[i] = std::make_unique<PartOf>(elf.bytes(), begin, size);
    }
  }
  if (all.Of(DwarfSection::kInfo).size() == 0) return Fail(ErrorCode::kNotFound, "no .debug_info");
  return all;
}

}  // namespace pyrometer
