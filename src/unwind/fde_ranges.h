// SPDX-License-Identifier: Apache-2.0
// Makes the FDEs of an object a partition of its code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pyrometer/mapping.h"
#include "unwind/call_frame_info.h"

namespace pyrometer {

// Drops what does not begin in code that is in the file (functions that the linker has left out
// have address 0 in .debug_frame), and cuts what reaches beyond it.
void KeepCode(std::vector<Fde>& fdes, std::span<const Segment> segments);

// Sorts `fdes` by `from` and makes them disjoint. Where two overlap, each is right from its
// beginning to that of the next, as for the C++ runtime, which searches by beginnings; of those
// that begin at the same address the first is right. Returns how many were cut or dropped.
uint32_t ResolveOverlaps(std::vector<Fde>& fdes);

// What `fdes` say of addresses that `covered` leaves out: of each the first stretch. Both are
// sorted and disjoint.
std::vector<Fde> Uncovered(std::span<const Fde> fdes, std::span<const Fde> covered);

}  // namespace pyrometer
