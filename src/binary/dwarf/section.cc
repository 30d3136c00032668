// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf/section.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pyrometer {

Result<DwarfSection> DwarfSection::Open(const ElfFile& elf, const Section* section,
                                        size_t& inflated) {
  DwarfSection opened;
  if (section == nullptr || section->header.sh_type == SHT_NOBITS) return opened;
  if ((section->header.sh_flags & SHF_COMPRESSED) != 0) {
    ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadSection(elf, *section, inflated));
    inflated -= bytes.size();
    opened.own_ = MemoryBytes(std::move(bytes));
    opened.bytes_ = opened.own_.get();
    opened.size_ = opened.bytes_->size();
  } else {
    opened.bytes_ = &elf.bytes();
    opened.begin_ = std::min(section->header.sh_offset, elf.bytes().size());
    opened.size_ = std::min(section->header.sh_size, elf.bytes().size() - opened.begin_);
  }
  opened.windows_.resize(kWindows);
  return opened;
}

std::span<const std::byte> DwarfSection::At(uint64_t offset, size_t wanted) {
  if (offset >= size_) return {};
  const uint64_t begin = offset / kWindow * kWindow;
  Window& window = windows_[offset / kWindow % kWindows];
  if (window.offset != begin) {
    window.offset = begin;
    window.bytes.resize(std::min<uint64_t>(kWindow + kMostAtOnce, size_ - begin));
    if (!bytes_->Read(begin_ + begin, window.bytes)) window.bytes.clear();
  }
  const std::span<const std::byte> bytes(window.bytes);
  const size_t skipped = std::min<size_t>(offset - begin, bytes.size());
  return bytes.subspan(skipped, std::min(wanted, bytes.size() - skipped));
}

std::string_view DwarfSection::TextAt(uint64_t offset) {
  const std::span<const std::byte> bytes = At(offset, kMostAtOnce);
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  return {text, bytes.empty() ? 0 : ::strnlen(text, bytes.size())};
}

Result<void> DwarfSection::Read(uint64_t offset, uint64_t size, std::vector<std::byte>& out) const {
  if (!Within(offset, size, size_)) {
    return Fail(ErrorCode::kMalformed, "{} bytes at {:#x} are not in their section", size, offset);
  }
  if (out.capacity() < size) out = {};  // or both would be held for a moment
  out.resize(size);
  return size == 0 ? Result<void>() : bytes_->Read(begin_ + offset, out);
}

Result<DwarfSections> DwarfSections::Open(const DwarfFile& file, size_t most_inflated) {
  ASSIGN_OR_RETURN(DwarfSections opened, OpenOwn(*file.elf, *file.sections, most_inflated));
  if (opened.info.size() == 0) return Fail(ErrorCode::kNotFound, "no debug information");
  if (file.alternate == nullptr) return opened;
  const Result<SectionTable> sections = SectionTable::Read(*file.alternate);
  if (!sections) return opened;
  // What is wrong with it costs what is in it. It may have nothing but strings.
  Result<DwarfSections> alternate = OpenOwn(*file.alternate, *sections, most_inflated);
  if (alternate) opened.alternate = std::make_unique<DwarfSections>(*std::move(alternate));
  return opened;
}

Result<DwarfSections> DwarfSections::OpenOwn(const ElfFile& elf, const SectionTable& sections,
                                             size_t& most_inflated) {
  DwarfSections opened;
  const std::pair<const char*, DwarfSection*> all[] = {
      {".debug_info", &opened.info},
      {".debug_abbrev", &opened.abbreviations},
      {".debug_line", &opened.lines},
      {".debug_str", &opened.strings},
      {".debug_line_str", &opened.line_strings},
      {".debug_str_offsets", &opened.string_offsets},
      {".debug_addr", &opened.addresses},
      {".debug_ranges", &opened.ranges},
      {".debug_rnglists", &opened.range_lists}};
  for (const auto& [name, section] : all) {
    ASSIGN_OR_RETURN(*section, DwarfSection::Open(elf, sections.Find(name), most_inflated));
  }
  return opened;
}

DwarfSection* DwarfSections::SectionOf(const DwarfName& name) {
  if (name.is_alternate) {
    return alternate == nullptr ? nullptr
                                : alternate->SectionOf({.in = name.in, .offset = name.offset});
  }
  switch (name.in) {
    case DwarfName::In::kInfo:
      return &info;
    case DwarfName::In::kStrings:
      return &strings;
    case DwarfName::In::kLineStrings:
      return &line_strings;
    case DwarfName::In::kNowhere:
    case DwarfName::In::kEntry:
    case DwarfName::In::kUnit:
      return nullptr;
  }
  return nullptr;
}

}  // namespace pyrometer
