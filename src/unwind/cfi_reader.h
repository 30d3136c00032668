// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "unwind/call_frame_info.h"

namespace pyrometer {

// Adds the FDEs of `section`, in its order, at most `most` of them, and the CIEs that they use, to
// `info`, which refers to the section's bytes from then on. A malformed FDE or CIE costs only the
// functions that it describes. What follows a record of impossible length is lost, and counted as
// one bad function. FDEs beyond `most` are counted as bad.
// Formats: DWARF 5, section 6.4.1 (versions 1, 3 and 4, with lengths of 32 or 64 bits); Linux
// Standard Base Core 5.0, section 10.6 (.eh_frame).
void ReadCallFrameInfo(const CfiSection& section, size_t most, CallFrameInfo& info);

}  // namespace pyrometer
