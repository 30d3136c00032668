// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "binary/byte_source.h"
#include "debuginfo/dwarf_sections.h"
#include "debuginfo/dwarf_strings.h"
#include "debuginfo/dwarf_unit.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The debug information of one file: its units, and what their attributes stand for. Reads units in
// large steps, one after the other, and keeps one at a time; entries of others are read one by one
// where a unit refers to them. One thread.
class DwarfFile {
 public:
  static constexpr uint64_t kMostOfUnit = uint64_t{160} << 20;

  struct Others {
    // What dwz has moved to a file for many ("supplementary"); null: there is none.
    DwarfFile* supplement = nullptr;
    // Of split units: the file with their skeletons, which has addresses and, until DWARF 4,
    // ranges.
    DwarfFile* skeletons = nullptr;
  };
  // `others` must outlive this.
  explicit DwarfFile(DwarfSections sections) : DwarfFile(std::move(sections), Others()) {}
  DwarfFile(DwarfSections sections, const Others& others)
      : DwarfFile(std::make_shared<const DwarfSections>(std::move(sections)), others) {}
  DwarfFile(std::shared_ptr<const DwarfSections> sections, const Others& others);

  const DwarfSections& sections() const { return *sections_; }
  // For another reader of the same file.
  std::shared_ptr<const DwarfSections> shared_sections() const { return sections_; }
  const Others& others() const { return others_; }

  // The header at `offset`; see ParseUnitHeader.
  Result<void> ReadHeader(uint64_t offset, DwarfUnitHeader& out);
  // A unit's bytes, from its header on. Valid until the next call. Errors: kExhausted beyond
  // kMostOfUnit.
  Result<std::span<const std::byte>> ReadUnit(const DwarfUnitHeader& header);
  // What a split unit has not itself.
  struct Split {
    const DwarfUnit& skeleton;
    uint64_t abbrevs = 0;  // where its parts begin
    uint64_t string_offsets = 0;
    uint64_t range_lists = 0;
  };
  // A unit by its header and the bytes from there on, of which the first entry is needed.
  Result<DwarfUnit> OpenUnit(DwarfUnitHeader header, std::span<const std::byte> bytes,
                             const Split* split = nullptr);
  // The same of a unit whose other entries are not needed.
  Result<DwarfUnit> OpenUnit(const DwarfUnitHeader& header);
  // The unit that `offset` lies in; null if there is none. Valid until the next call.
  const DwarfUnit* UnitAt(uint64_t offset);
  // Reads an entry of any unit, whose strings are valid until the next call.
  bool ReadEntry(const DwarfUnit& unit, uint64_t offset, DwarfDie& out);

  // What a value stands for. A string is valid until the next call, or as long as the entry's
  // bytes.
  std::string_view String(const DwarfUnit& unit, const DwarfValue& value);
  std::optional<uint64_t> Address(const DwarfUnit& unit, const DwarfValue& value);
  // In .debug_rnglists.
  std::optional<uint64_t> RangeList(const DwarfUnit& unit, const DwarfValue& value);

  // Number `index` of the addresses that begin at `base`.
  std::optional<uint64_t> AddressAt(uint64_t base, uint64_t index);

  // Reads .debug_line, .debug_ranges or .debug_rnglists, each with a place of its own.
  ReadAhead& lines() { return lines_; }
  ReadAhead& ranges() { return ranges_; }
  ReadAhead& range_lists() { return range_lists_; }

 private:
  static void TakeFrom(const Split& split, DwarfUnit& unit);
  Result<std::shared_ptr<const DwarfAbbrevs>> Abbrevs(const DwarfUnitHeader& header);
  std::optional<uint64_t> OffsetAt(ReadAhead& section, const DwarfFormat& format, uint64_t base,
                                   uint64_t index);
  bool ScanHeadersTo(uint64_t offset);

  const std::shared_ptr<const DwarfSections> sections_;
  const Others others_;
  ReadAhead units_;
  ReadAhead entries_;  // those that others refer to
  ReadAhead abbrev_bytes_;
  ReadAhead string_offsets_;
  ReadAhead addresses_;
  ReadAhead lines_;
  ReadAhead ranges_;
  ReadAhead range_lists_;
  DwarfStrings strings_;
  DwarfStrings line_strings_;
  // By where they are in .debug_abbrev.
  absl::flat_hash_map<uint64_t, std::pair<DwarfFormat, std::shared_ptr<const DwarfAbbrevs>>>
      abbrevs_;
  size_t abbrev_memory_ = 0;
  std::vector<DwarfUnitHeader> headers_;  // of UnitAt(): as far as it had to look
  uint64_t scanned_to_ = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<const DwarfUnit>> opened_;  // likewise
};

}  // namespace pyrometer
