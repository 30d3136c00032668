// SPDX-License-Identifier: Apache-2.0
// rootless SECONDS: works directly below main, whose caller in libc keeps no frame pointer.
#include "work.h"

WORK_NOINLINE void under_main(void) {
  spin(WORK_SLICE);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  struct tally tally = {"under_main", 0};
  start_work(argv[1]);
  while (work_left()) {
    under_main();
    tally.iterations += WORK_SLICE;
  }
  report(&tally, 1);
  return 0;
}
