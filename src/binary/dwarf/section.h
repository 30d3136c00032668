// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "binary/byte_source.h"
#include "binary/dwarf_functions.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A section of debug information. Small pieces of it are kept for a while, as those that are read
// next often lie beside them: at most 1.1 MB. One thread.
class DwarfSection {
 public:
  static constexpr size_t kMostAtOnce = 4096;  // bytes

  DwarfSection() = default;  // is not there
  // `inflated`: what a compressed section may take in memory, of which that is taken off. Errors:
  // those of ReadSection.
  static Result<DwarfSection> Open(const ElfFile& elf, const Section* section, size_t& inflated);

  uint64_t size() const { return size_; }

  // The bytes at `offset`, fewer at its end; none if they cannot be read. Valid until the next
  // call. REQUIRES: at most kMostAtOnce.
  std::span<const std::byte> At(uint64_t offset, size_t wanted);
  // Up to the next NUL; longer ones are cut.
  std::string_view TextAt(uint64_t offset);

  // A larger piece. Errors: kMalformed if it does not lie within; those of reading.
  Result<void> Read(uint64_t offset, uint64_t size, std::vector<std::byte>& out) const;

 private:
  static constexpr size_t kWindow = size_t{32} << 10;
  static constexpr size_t kWindows = 32;

  struct Window {
    uint64_t offset = ~uint64_t{0};
    std::vector<std::byte> bytes{};  // those of the window, and kMostAtOnce behind it
  };

  std::unique_ptr<ByteSource> own_;    // what was decompressed
  const ByteSource* bytes_ = nullptr;  // that, or the file's
  uint64_t begin_ = 0;                 // in `bytes_`
  uint64_t size_ = 0;
  std::vector<Window> windows_;
};

// All that tell the source of code: DWARF 5, section 7 and appendix B.
struct DwarfSections {
  // Errors: kNotFound if there is no debug information; kExhausted if more of it is compressed than
  // `most_inflated` bytes; those of ReadSection.
  static Result<DwarfSections> Open(const DwarfFile& file, size_t most_inflated);

  // The section that has a name's text. Null: nobody knows, or it takes more than a text.
  DwarfSection* SectionOf(const DwarfName& name);

  DwarfSection info;
  DwarfSection abbreviations;
  DwarfSection lines;
  DwarfSection strings;
  DwarfSection line_strings;
  DwarfSection string_offsets;
  DwarfSection addresses;
  DwarfSection ranges;                       // before version 5
  DwarfSection range_lists;                  // since version 5
  std::unique_ptr<DwarfSections> alternate;  // null: it is not at hand

 private:
  // Takes off `most_inflated` what it inflates.
  static Result<DwarfSections> OpenOwn(const ElfFile& elf, const SectionTable& sections,
                                       size_t& most_inflated);
};

}  // namespace pyrometer
