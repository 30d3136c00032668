// SPDX-License-Identifier: Apache-2.0
// short_lived MILLISECONDS|PAGESp: a program that is over after so much CPU time, or so many pages.
#include <stdlib.h>

#include "work.h"

WORK_NOINLINE void short_work(void) {
  spin(WORK_SLICE);
}

static void loop(void* milliseconds) {
  if (work_by_pages(milliseconds)) {
    while (work_left()) short_work();
    return;
  }
  const uint64_t end = strtoull(milliseconds, NULL, 10) * 1000000;
  while (used_cpu_ns() < end) short_work();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  from_root(loop, argv[1]);
  return 0;
}
