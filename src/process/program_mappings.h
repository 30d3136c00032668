// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pyrometer/mapping.h"

namespace pyrometer {

// The executable mappings of a program at one moment.
struct ProgramMappings {
  std::vector<ObjectMapping> mappings;  // ascending, not overlapping
  // What mm->exec_vm was then if these were all mappings; they may still include unmapped ones.
  uint64_t exec_pages = 0;
  // False: the program's start was missed, and there may be more.
  bool complete = false;
};

}  // namespace pyrometer
