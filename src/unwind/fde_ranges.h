// SPDX-License-Identifier: Apache-2.0
// Makes the FDEs of an object disjoint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pyrometer/mapping.h"
#include "unwind/call_frame_info.h"

namespace pyrometer {

// Drops FDEs that do not begin in code of the file (functions that the linker has dropped have
// address 0 in .debug_frame), and cuts those that reach beyond it.
void KeepCode(std::vector<Fde>& fdes, std::span<const Segment> segments);

// Sorts `fdes` by `from` and makes them disjoint. Where two overlap, each holds from its beginning
// to that of the next, as for the C++ runtime, which searches by beginnings; of those that begin at
// the same address the first one holds. Returns how many were cut or dropped.
uint32_t ResolveOverlaps(std::vector<Fde>& fdes);

// The parts of `fdes` that `covered` leaves out, of each FDE the first eight. Both are sorted and
// disjoint.
std::vector<Fde> Uncovered(std::span<const Fde> fdes, std::span<const Fde> covered);

}  // namespace pyrometer
