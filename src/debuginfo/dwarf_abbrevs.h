// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "debuginfo/dwarf_forms.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The attributes that anything here depends on.
enum class DwarfAttribute : uint8_t {
  kNone,
  kName,
  kLinkageName,
  kLowPc,
  kHighPc,
  kRanges,
  kOrigin,  // DW_AT_abstract_origin
  kSpecification,
  kCallFile,
  kCallLine,
  kLanguage,
  kCompDir,
  kStmtList,
  kStrOffsetsBase,
  kAddrBase,
  kRngListsBase,
  kRangesBase,
  kDwoId,
  kDwoName,
  kSibling,  // of types
  kCount,
};

// A debugging information entry, as far as anything depends on it.
class DwarfDie {
 public:
  uint16_t tag = 0;
  bool has_children = false;

  bool Has(DwarfAttribute a) const { return (present_ >> static_cast<unsigned>(a) & 1) != 0; }
  // Null if there is none.
  const DwarfValue* Find(DwarfAttribute a) const {
    return Has(a) ? &values_[static_cast<size_t>(a)] : nullptr;
  }
  uint64_t NumberOr(DwarfAttribute a, uint64_t otherwise) const {
    return Has(a) ? values_[static_cast<size_t>(a)].number : otherwise;
  }

 private:
  friend class DwarfAbbrevs;
  uint32_t present_ = 0;
  std::array<DwarfValue, static_cast<size_t>(DwarfAttribute::kCount)> values_;
};

// How the entries of a unit are encoded: one table of .debug_abbrev.
// Source: DWARF 5, section 7.5.3.
class DwarfAbbrevs {
 public:
  // Of an entry: an attribute to read, or bytes to pass over.
  struct Step {
    DwarfAttribute attribute = DwarfAttribute::kNone;
    uint16_t form = 0;  // 0: `size` bytes to pass over
    uint32_t size = 0;  // of a value of this form; kVaries
    int64_t constant = 0;
  };
  struct Steps {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct Entry {
    uint16_t tag = 0;
    bool has_children = false;
    bool may_have_code = false;  // it is a function, or a call, and says where its code is
    Steps read;                  // to read its attributes
    Steps pass;                  // to read none of them, unless it has a sibling
  };

  static constexpr size_t kMostSteps = size_t{1} << 20;
  static constexpr size_t kMostEntries = size_t{1} << 18;

  // Reads the table at the beginning of `bytes`. Errors: kMalformed; kExhausted if `bytes` end
  // before the table.
  static Result<DwarfAbbrevs> Parse(std::span<const std::byte> bytes, const DwarfFormat& format);

  // Null if there is none.
  const Entry* Find(uint64_t code) const {
    if (code - 1 < dense_.size()) return &dense_[code - 1];
    const auto found = sparse_.find(code);
    return found == sparse_.end() ? nullptr : &found->second;
  }

  // Reads an entry's attributes, whose code was read. False if it is malformed.
  bool Read(const Entry& entry, const DwarfFormat& format, DwarfCursor& in, DwarfDie& out) const {
    return Follow(entry, entry.read, format, in, out);
  }
  // Reads past them, but for DwarfAttribute::kSibling.
  bool Pass(const Entry& entry, const DwarfFormat& format, DwarfCursor& in, DwarfDie& out) const {
    return Follow(entry, entry.pass, format, in, out);
  }

  // Memory.
  size_t bytes() const {
    return steps_.size() * sizeof(Step) + (dense_.size() + 2 * sparse_.size()) * sizeof(Entry);
  }

 private:
  static constexpr uint32_t kVaries = ~uint32_t{0};
  static constexpr size_t kMostAttributes = 4096;  // of an entry; compilers need 30

  // `attributes`: empty; a place for those of the entry.
  bool ParseEntry(const DwarfFormat& format, DwarfCursor& in, std::vector<Step>& attributes,
                  Entry& entry);
  Steps AddSteps(std::span<const Step> attributes, bool with_values);
  bool Follow(const Entry& entry, const Steps& steps, const DwarfFormat& format, DwarfCursor& in,
              DwarfDie& out) const;

  std::vector<Entry> dense_;  // of code 1, 2, ...: what all compilers write
  absl::flat_hash_map<uint64_t, Entry> sparse_;
  std::vector<Step> steps_;
};

}  // namespace pyrometer
