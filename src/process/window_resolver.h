// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "process/process_table.h"
#include "pyrometer/sample.h"

namespace pyrometer {

struct ResolveTally {
  uint64_t unknown_process_samples = 0;
  uint64_t resolved_frames = 0;
  uint64_t cut_stacks = 0;       // at an address in no mapping
  uint64_t outdated_frames = 0;  // attributed to a mapping that had ended; corrected
  uint64_t doubtful_frames = 0;  // their mapping changed meanwhile; left as addresses
};

// Resolves the frames of `window` as described for ProcessKnowledge::Resolve().
//
// The kernel side attributes a place to the old file until it is told of a change. The history
// knows when a mapping ended and when the kernel side was told: an object frame of a sample with
// ticks between the two is looked up again, by the sample's time. Where the ticks lie on both sides
// of the end, or the object was in two places, nobody can tell, and the frame becomes its address.
// Its callers are dropped, because they were found with the table of the wrong file, and the stack
// ends in "tables not ready". Both are counted. What the kernel side left as an address (JIT code,
// samples refused for lack of room) becomes an object frame only if the same file was there at all
// ticks of the sample.
Window ResolveWindow(Window window, const ProcessTable& processes, ResolveTally& tally);

}  // namespace pyrometer
