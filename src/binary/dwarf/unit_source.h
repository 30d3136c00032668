// SPDX-License-Identifier: Apache-2.0
// How units of compilation refer to what lies elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "binary/dwarf/entry.h"
#include "binary/dwarf/line_table.h"
#include "binary/dwarf/section.h"
#include "binary/dwarf_functions.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct DwarfRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A unit, with what its entries need to be understood.
struct DwarfUnitContext {
  DwarfUnit unit{};
  std::shared_ptr<const DwarfAbbreviations> abbreviations{};
  uint64_t base_address = 0;
  // Where in their sections what it refers to by number begins.
  std::optional<uint64_t> string_offsets{};
  std::optional<uint64_t> addresses{};
  std::optional<uint64_t> range_lists{};
  std::optional<uint64_t> lines{};  // its program
  DwarfLineTable::Text directory{};
  bool is_partial = false;  // has only what other units refer to, and no code
  bool is_split = false;    // its entries are in another file
  bool has_scopes = false;  // functions may be members of others: not in C
};

// What an entry of a function says of its name, or of where its name is.
struct DwarfOrigin {
  DwarfName name{};
  bool is_linkage_name = false;
  uint64_t named_by = 0;  // the entry that has the name
  uint32_t start_line = 0;
};

// All units, by where they lie. Remembers some of them, and names that entries refer to.
class DwarfUnits {
 public:
  explicit DwarfUnits(DwarfSections& sections) : sections_(sections) {}

  // Finds the units: a small read for each. Errors: kExhausted.
  Result<void> Find();
  const std::vector<uint64_t>& offsets() const { return offsets_; }

  // The unit at this offset. Errors: those of reading; kMalformed; kUnsupported.
  Result<DwarfUnitContext> Open(uint64_t offset);

  // Of `entry` in `context`, following what it refers to. `own` are the bytes of the unit that is
  // being read.
  DwarfOrigin OriginOf(const DwarfEntry& entry, const DwarfUnitContext& context,
                       std::span<const std::byte> own);
  // Entries of the last unit that was read are not asked for any more.
  void ForgetOrigins() { origins_.clear(); }

  DwarfName NameOf(const DwarfValue& value, const DwarfUnitContext& context);

  // Which code an entry is for: its ranges, or that from low_pc to high_pc.
  std::vector<DwarfRange> RangesOf(const DwarfEntry& entry, const DwarfUnitContext& context);
  std::optional<uint64_t> AddressOf(const DwarfValue& value, const DwarfUnitContext& context);

 private:
  // References to references: specification of an origin, in practice.
  static constexpr unsigned kMostReferences = 8;

  Result<std::shared_ptr<const DwarfAbbreviations>> AbbreviationsOf(const DwarfUnit& unit);
  DwarfOrigin Follow(uint64_t entry, const DwarfUnitContext& context,
                     std::span<const std::byte> own, unsigned steps);
  DwarfOrigin Merge(const DwarfEntry& entry, const DwarfUnitContext& context,
                    std::span<const std::byte> own, unsigned steps);
  std::shared_ptr<const DwarfUnitContext> ContextOf(uint64_t entry);
  std::vector<DwarfRange> OldRangesAt(uint64_t offset, const DwarfUnitContext& context);
  std::vector<DwarfRange> RangeListAt(uint64_t offset, const DwarfUnitContext& context);
  std::optional<uint64_t> AddressAt(uint64_t index, const DwarfUnitContext& context);

  DwarfSections& sections_;
  std::vector<uint64_t> offsets_;  // ascending
  absl::flat_hash_map<uint64_t, std::shared_ptr<const DwarfAbbreviations>> abbreviations_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const DwarfUnitContext>> contexts_;
  absl::flat_hash_map<uint64_t, DwarfOrigin> origins_;
};

}  // namespace pyrometer
