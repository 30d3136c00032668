// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "binary/elf_file.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where an object says that more of its debug information is. Names and paths are the file's: as
// long as a path may be, without a NUL, and else anything.
struct DebugLinks {
  // .gnu_debuglink: a file's name, and the CRC-32 of its bytes. "": none. Convention: GDB manual,
  // "Debugging Information in Separate Files".
  std::string name{};
  uint32_t checksum = 0;
  // .gnu_debugaltlink: the path of the file that dwz has moved to what several files have in
  // common, and its build id. "": none.
  std::string supplement{};
  BuildId supplement_id{};
  // What it has may be skeletons of units that are in a package beside it (.dwp), or loose (.dwo).
  bool may_be_split = false;
  // Where the loose ones were put: absolute paths. ReadDebugLinks leaves it empty, which is told
  // by debug information alone.
  static constexpr size_t kMostSplits = 128;
  std::vector<std::string> splits{};
};

// Links that are malformed are none. Errors: those of SectionTable::Read.
Result<DebugLinks> ReadDebugLinks(const ElfFile& elf);

}  // namespace pyrometer
