// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "debuginfo/dwarf_file.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where the parts of one split unit begin in the sections of its file.
struct DwarfContribution {
  uint64_t info = 0;
  uint64_t abbrevs = 0;
  uint64_t string_offsets = 0;
  uint64_t range_lists = 0;
};

// The split units of a file, by the number that their skeletons have, too: those of a package
// (.dwp), which has an index of them, or of what a compiler wrote (.dwo).
// Sources: DWARF 5, section 7.3.5; until version 4 the GCC wiki, "DebugFissionDWP".
class DwarfPackage {
 public:
  static constexpr size_t kMostUnits = size_t{1} << 18;
  static constexpr size_t kMostOfIndex = size_t{64} << 20;

  // `file` has the units of `elf`. Errors: kMalformed; kExhausted.
  static Result<DwarfPackage> Read(const ElfFile& elf, const SectionTable& sections,
                                   DwarfFile& file);

  // Null if it is not there.
  const DwarfContribution* Find(uint64_t dwo_id) const {
    const auto found = units_.find(dwo_id);
    return found == units_.end() ? nullptr : &found->second;
  }
  size_t size() const { return units_.size(); }

 private:
  Result<void> ReadIndex(std::span<const std::byte> bytes);
  void ScanUnits(DwarfFile& file);

  absl::flat_hash_map<uint64_t, DwarfContribution> units_;
};

}  // namespace pyrometer
