// SPDX-License-Identifier: Apache-2.0
// deep_paths DEPTH SECONDS: works at the end of call chains of this depth, each drawn by lot from
// left() and right(), so that no two of them are alike.
#include <stdlib.h>

#include "work.h"

static struct tally tally = {"bottom", 0};

void step(int depth);

WORK_NOINLINE void bottom(void) {
  spin(WORK_SLICE);
  tally.iterations += WORK_SLICE;
}

WORK_NOINLINE void left(int depth) {
  step(depth);
  WORK_NO_TAIL_CALL();
}

WORK_NOINLINE void right(int depth) {
  step(depth);
  WORK_NO_TAIL_CALL();
}

WORK_NOINLINE void step(int depth) {
  if (depth == 0) {
    bottom();
  } else if (draw(2) == 0) {
    left(depth - 2);
  } else {
    right(depth - 2);
  }
  WORK_NO_TAIL_CALL();
}

static int depth;

static void loop(void* unused) {
  (void)unused;
  while (work_left()) step(depth);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  depth = atoi(argv[1]) / 2 * 2;
  start_work(argv[2]);
  from_root(loop, NULL);
  report(&tally, 1);
  return 0;
}
