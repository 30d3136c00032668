// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "process/process_table.h"
#include "pyrometer/sample.h"

namespace pyrometer {

struct ResolveTally {
  uint64_t unknown_process_samples = 0;
  uint64_t resolved_frames = 0;
  uint64_t cut_stacks = 0;       // at what lies in no mapping
  uint64_t outdated_frames = 0;  // named by a mapping that had ended; corrected
  uint64_t doubtful_frames = 0;  // their place changed meanwhile; left as addresses
};

// The frames of `window` as ProcessTracker::Resolve() says.
Window ResolveWindow(Window window, const ProcessTable& processes, ResolveTally& tally);

}  // namespace pyrometer
