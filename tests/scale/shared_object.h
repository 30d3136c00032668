// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pyrometer/ids.h"

namespace pyrometer::scale {

// What every made-up file has: 16 functions of 256 bytes in one executable segment.
struct Layout {
  static constexpr uint64_t kOffset = 0x1000;
  static constexpr uint64_t kAddress = 0x3000;
  static constexpr uint64_t kBytes = 0x1000;
  static constexpr uint32_t kFunctions = 16;
  static constexpr uint64_t kFunctionBytes = kBytes / kFunctions;
};

// An ELF file for this machine whose functions are called TEXT.0 to TEXT.15, with call frame
// information, up to its code, which begins at Layout::kOffset and is never read. `build_id` may be
// empty.
std::vector<std::byte> SharedObject(const std::string& text, const BuildId& build_id);

}  // namespace pyrometer::scale
