// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "binary/byte_source.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"

namespace pyrometer {

enum class DwarfSection : uint8_t {
  kInfo,
  kAbbrev,
  kLine,
  kStr,
  kLineStr,
  kStrOffsets,
  kAddr,
  kRanges,    // until DWARF 4
  kRngLists,  // from DWARF 5
  kCount,
};

// The sections of one file's debug information, read where they are. Those that are compressed are
// held in memory, or if they are large inflated while they are read.
class DwarfSections {
 public:
  // What those that are held may take. The strings of the largest programs of Debian have 110 MB.
  static constexpr uint64_t kMostDecompressed = uint64_t{224} << 20;

  // `suffix` is "" or ".dwo", for what a file has of split units. Errors: kNotFound if there is no
  // .debug_info; those of ReadSection. `elf` must outlive this.
  static Result<DwarfSections> Open(const ElfFile& elf, const SectionTable& sections,
                                    const char* suffix = "");

  // Empty if the file has no such section.
  const ByteSource& Of(DwarfSection section) const {
    return *sources_[static_cast<size_t>(section)];
  }

 private:
  DwarfSections() = default;

  std::array<std::unique_ptr<ByteSource>, static_cast<size_t>(DwarfSection::kCount)> sources_;
};

}  // namespace pyrometer
