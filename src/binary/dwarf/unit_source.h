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
  bool is_named_by_alternate = false;  // the next is in the alternate file
  uint64_t named_by = 0;               // the entry that has the name
  uint32_t start_line = 0;
};

// A namespace, a class or the like: names of entries are within its own.
struct DwarfScope {
  DwarfName name{};
  bool has_name = false;  // which may still be nowhere at hand
  bool is_namespace = false;
};

// All units of a file, by where they lie. Remembers some of them, and names that entries refer to.
class DwarfUnits {
 public:
  explicit DwarfUnits(DwarfSections& sections) : DwarfUnits(sections, false) {}

  // Finds the units: a small read for each. Errors: kExhausted: only the first ones were found.
  Result<void> Find();
  const std::vector<uint64_t>& offsets() const { return offsets_; }

  // The unit at this offset. Errors: those of reading; kMalformed; kUnsupported.
  Result<DwarfUnitContext> Open(uint64_t offset);

  // Of `entry` in `context`, following what it refers to. `own` are the bytes of the unit that is
  // being read.
  DwarfOrigin OriginOf(const DwarfEntry& entry, const DwarfUnitContext& context,
                       std::span<const std::byte> own);
  // Entries of the last unit that was read are not asked for any more.
  void ForgetOrigins();

  DwarfName NameOf(const DwarfValue& value, const DwarfUnitContext& context);

  // The scope that `entry` makes for those below it, if it makes one. Names of functions that have
  // linkage names say all themselves.
  std::optional<DwarfScope> ScopeOf(const DwarfEntry& entry, const DwarfUnitContext& context);

  // The unit that has the entry at this offset, of which only the first entry is known to be one.
  // Null: none that can be read.
  std::shared_ptr<const DwarfUnitContext> ContextOf(uint64_t entry);
  // Reads the entry, or the end of siblings, at `offset`. Returns where the next one is; nothing if
  // it is damaged, or larger than 4 KiB.
  std::optional<uint64_t> ReadEntryAt(uint64_t offset, const DwarfUnitContext& context,
                                      std::optional<DwarfEntry>& entry);

  // Those of the alternate file; null if it is not at hand.
  DwarfUnits* alternate() const { return alternate_.get(); }

  // Which code an entry is for: its ranges, or that from low_pc to high_pc.
  std::vector<DwarfRange> RangesOf(const DwarfEntry& entry, const DwarfUnitContext& context);
  std::optional<uint64_t> AddressOf(const DwarfValue& value, const DwarfUnitContext& context);

 private:
  // References to references: specification of an origin, in practice.
  static constexpr unsigned kMostReferences = 8;

  DwarfUnits(DwarfSections& sections, bool is_alternate);

  Result<std::shared_ptr<const DwarfAbbreviations>> AbbreviationsOf(const DwarfUnit& unit);
  // Of the entry of a function that another refers to.
  DwarfOrigin FollowTo(const DwarfValue& reference, const DwarfUnitContext& context,
                       std::span<const std::byte> own, unsigned steps);
  DwarfOrigin Follow(uint64_t entry, const DwarfUnitContext& context,
                     std::span<const std::byte> own, unsigned steps);
  DwarfOrigin Merge(const DwarfEntry& entry, const DwarfUnitContext& context,
                    std::span<const std::byte> own, unsigned steps);
  std::vector<DwarfRange> OldRangesAt(uint64_t offset, const DwarfUnitContext& context);
  std::vector<DwarfRange> RangeListAt(uint64_t offset, const DwarfUnitContext& context);
  std::optional<uint64_t> AddressAt(uint64_t index, const DwarfUnitContext& context);

  DwarfSections& sections_;
  const bool is_alternate_;  // refers to no other file
  std::unique_ptr<DwarfUnits> alternate_;
  bool is_searched_ = false;       // for units
  std::vector<uint64_t> offsets_;  // ascending
  absl::flat_hash_map<uint64_t, std::shared_ptr<const DwarfAbbreviations>> abbreviations_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const DwarfUnitContext>> contexts_;
  absl::flat_hash_map<uint64_t, DwarfOrigin> origins_;
};

}  // namespace pyrometer
