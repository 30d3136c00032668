// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/sample.h"

namespace pyrometer {

// Removes stacks that no sample of `window` has, and their frames, so that nobody names them. The
// rest keeps its order; samples that share a stack go on sharing it. Takes time in proportion to
// the window. REQUIRES: each sample's stack is one of the window's.
void KeepUsedStacks(Window& window);

}  // namespace pyrometer
