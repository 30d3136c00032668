// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "debuginfo/go_image.h"
#include "debuginfo/go_table.h"

namespace pyrometer {

// What the module data (runtime.moduledata) of a Go program tells, as far as its table of functions
// does not.
struct GoModule {
  uint64_t text = 0;  // where code begins
  // Addresses that FUNCDATA may be relative to, the likeliest first: which word it is depends on
  // the version, and which one it is shows only when it is used.
  std::vector<uint64_t> func_data_bases;
};

// Finds the module data of the table at `table_address`, which no symbol needs to tell: it begins
// with that address, and then names the parts of the table. For tables that are relative, hence of
// Go 1.18 and newer. Errors: kNotFound; kIo.
Result<GoModule> FindGoModule(const GoImage& image, const GoTable& table, uint64_t table_address);

}  // namespace pyrometer
