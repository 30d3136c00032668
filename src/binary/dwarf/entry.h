// SPDX-License-Identifier: Apache-2.0
// Debugging information entries: DWARF 5, sections 2 and 7.5.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "binary/dwarf/section.h"
#include "binary/dwarf_cursor.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The head of a unit in .debug_info.
struct DwarfUnit {
  uint64_t offset = 0;  // in the section
  uint64_t entries = 0;
  uint64_t end = 0;
  uint64_t abbreviations = 0;
  uint16_t version = 0;
  uint8_t type = 0;  // DW_UT_*
  uint8_t address_size = 8;
  uint8_t offset_size = 4;
};

// The number of bytes that follow, with which units and line programs begin; of one in the 64-bit
// format `offset_size` becomes 8. DWARF 5, section 7.4.
uint64_t TakeDwarfLength(DwarfCursor& cursor, uint8_t& offset_size);

// The unit at `offset`. Nothing if there is none of a known version, or it does not lie within.
std::optional<DwarfUnit> DwarfUnitAt(DwarfSection& info, uint64_t offset);

// What an attribute's number means.
enum class DwarfClass : uint8_t {
  kNone,
  kOther,  // was skipped
  kAddress,
  kAddressIndex,
  kConstant,
  kFlag,
  kOffset,      // in another section
  kListIndex,   // of a list of ranges
  kEntry,       // an offset in .debug_info
  kText,        // likewise
  kString,      // an offset in .debug_str
  kLineString,  // an offset in .debug_line_str
  kStringIndex,
  kAlternateEntry,  // as kEntry, in the alternate file
  kAlternateString  // as kString, likewise
};

struct DwarfValue {
  DwarfClass kind = DwarfClass::kNone;
  uint64_t number = 0;

  explicit operator bool() const { return kind != DwarfClass::kNone; }
};

// Takes a value of `form` (DW_FORM_*) of an entry in `unit`. `base` is where the cursor's bytes
// begin in their section. Of forms that nobody knows the cursor fails.
DwarfValue TakeDwarfValue(DwarfCursor& cursor, uint64_t form, const DwarfUnit& unit, uint64_t base);

// Whether other entries' names are within that of one with this tag, as members of a class.
bool IsDwarfScope(uint64_t tag);

// The attributes that tell the source of code.
enum class DwarfAttribute : uint8_t {
  kSibling,
  kName,
  kLinkageName,
  kLowPc,
  kHighPc,
  kRanges,
  kOrigin,
  kSpecification,
  kDeclarationLine,
  kIsDeclaration,
  kCallFile,
  kCallLine,
  kLines,
  kDirectory,
  kStringOffsets,
  kAddresses,
  kRangeLists,
  kSplitName,
  kLanguage,
  kCount
};

// What is read of an entry.
class DwarfEntry {
 public:
  uint64_t offset = 0;  // in .debug_info
  uint64_t tag = 0;     // DW_TAG_*
  bool has_children = false;

  DwarfValue Get(DwarfAttribute attribute) const {
    return (known_ & Bit(attribute)) != 0 ? values_[static_cast<size_t>(attribute)] : DwarfValue();
  }
  void Set(DwarfAttribute attribute, DwarfValue value) {
    known_ |= Bit(attribute);
    values_[static_cast<size_t>(attribute)] = value;
  }
  void Clear() { known_ = 0; }

 private:
  static uint32_t Bit(DwarfAttribute attribute) {
    return uint32_t{1} << static_cast<unsigned>(attribute);
  }

  uint32_t known_ = 0;
  std::array<DwarfValue, static_cast<size_t>(DwarfAttribute::kCount)> values_{};
};

// How the entries of a unit are laid out. Immutable.
class DwarfAbbreviations {
 public:
  // Those at unit.abbreviations. Errors: kMalformed; kExhausted.
  static Result<DwarfAbbreviations> Read(const DwarfSection& section, const DwarfUnit& unit);

  // Reads the entry at the cursor: its tag, and the attributes above of those that may say where
  // code is. False if there is none: an end of siblings, or, if the cursor has failed, damage.
  bool ReadEntry(DwarfCursor& cursor, const DwarfUnit& unit, uint64_t base,
                 DwarfEntry& entry) const;

 private:
  // What is to be done with an attribute, or several.
  struct Step {
    enum class Kind : uint8_t { kSkip, kSkipNumber, kSkipForm, kTake, kConstant };
    Kind kind = Kind::kSkip;
    DwarfAttribute attribute = DwarfAttribute::kCount;
    uint16_t form = 0;
    uint64_t number = 0;  // bytes to skip, or the constant
  };
  struct Abbreviation {
    uint16_t tag = 0;
    bool has_children = false;
    uint32_t first = 0;  // of steps_
    uint32_t count = 0;
  };

  // An attribute as an abbreviation declares it.
  struct Declared {
    uint64_t attribute = 0;  // DW_AT_*
    uint64_t form = 0;       // DW_FORM_*
    uint64_t constant = 0;   // of DW_FORM_implicit_const
  };

  Result<void> Add(DwarfCursor& cursor, const DwarfUnit& unit);
  void AddStep(const Abbreviation& of, const Declared& declared, const DwarfUnit& unit);
  const Abbreviation* Find(uint64_t code) const;

  std::vector<Abbreviation> by_code_;  // from 1 on
  absl::flat_hash_map<uint64_t, Abbreviation> others_;
  std::vector<Step> steps_;
};

}  // namespace pyrometer
