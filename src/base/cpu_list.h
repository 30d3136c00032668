// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/procfs.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Parses the kernel's cpu list format, "0-3,7\n", in its order. Errors: kMalformed.
Result<std::vector<uint32_t>> ParseCpuList(std::string_view text);

// CPUs that are online now.
Result<std::vector<uint32_t>> OnlineCpus(const Procfs& procfs);

}  // namespace pyrometer
