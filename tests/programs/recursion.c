// SPDX-License-Identifier: Apache-2.0
// recursion DEPTH SECONDS: even() and odd() call each other DEPTH times, then bottom() works.
#include <stdlib.h>

#include "work.h"

void odd(int depth);

WORK_NOINLINE void bottom(void) {
  spin(10 * WORK_SLICE);
}

WORK_NOINLINE void even(int depth) {
  if (depth == 0) {
    bottom();
  } else {
    odd(depth - 1);
  }
  WORK_NO_TAIL_CALL();
}

WORK_NOINLINE void odd(int depth) {
  if (depth == 0) {
    bottom();
  } else {
    even(depth - 1);
  }
  WORK_NO_TAIL_CALL();
}

static int depth;
static struct tally tallies[] = {{"bottom", 0}};

static void loop(void* unused) {
  (void)unused;
  while (work_left()) {
    even(depth);
    tallies[0].iterations += 10 * WORK_SLICE;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  depth = atoi(argv[1]);
  start_work(argv[2]);
  from_root(loop, NULL);
  report(tallies, 1);
  return 0;
}
