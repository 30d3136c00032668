// SPDX-License-Identifier: Apache-2.0
// Something to do in a function that calls no other.
#pragma once

#include <stdint.h>

#include "unwound.h"

static volatile uint64_t sink;

NOINLINE static uint64_t work(uint64_t x) {
  uint64_t total = x;
  for (unsigned i = 0; i < 10; ++i) total = total * 31 + i;
  sink = sink + total;
  return total;
}
