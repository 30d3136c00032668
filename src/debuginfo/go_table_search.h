// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "binary/sections.h"
#include "debuginfo/go_image.h"
#include "debuginfo/go_table.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A table of functions whose functions lie in the program's code.
struct FoundGoTable {
  GoTable table;
  std::vector<uint64_t> func_data_bases;  // see GoModule; {0} for tables that hold addresses
};

// Finds a Go program's table by its section, or where that has no name of its own by its header.
// Errors: as ReadGoProgram.
Result<FoundGoTable> FindGoTable(const GoImage& image, const SectionTable& sections);

}  // namespace pyrometer
