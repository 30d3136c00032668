// SPDX-License-Identifier: Apache-2.0
// large SECONDS: works in a library of 489,000 functions, first on a stack of 40 KB, after a second
// of CPU time on one of 440.
#include "work.h"

void far_frames(unsigned depth);

static void work(void* unused) {
  (void)unused;
  while (work_left()) far_frames(used_cpu_ns() < 1000000000 ? 0 : 10);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  start_work(argv[1]);
  from_root(work, NULL);
  report(NULL, 0);
  return 0;
}
