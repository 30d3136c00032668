// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pyrometer {

// Whether fewer tasks of the machine run, or want to, than there are CPUs for us: then what uses
// one more takes nothing from anybody. False if that cannot be told.
bool HasIdleCpu();

// The tasks that run or want to, by the text of /proc/loadavg (proc(5)): ours is one of them.
std::optional<uint64_t> RunningTasksIn(std::string_view loadavg);

}  // namespace pyrometer
