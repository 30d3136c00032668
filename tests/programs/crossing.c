// SPDX-License-Identifier: Apache-2.0
// crossing SECONDS: the stack goes from the program into a library, back, and in again.
#include "crossing.h"

#include "work.h"

static struct tally tallies[] = {{"program_leaf", 0}, {"library_hidden", 0}};

static WORK_NOINLINE void program_leaf(void) {
  spin(WORK_SLICE);
}

static WORK_NOINLINE void program_callback(void) {
  if (draw(2) == 0) {
    program_leaf();
    tallies[0].iterations += WORK_SLICE;
  } else {
    library_inner();
    tallies[1].iterations += WORK_SLICE;
  }
}

static void loop(void* unused) {
  (void)unused;
  while (work_left()) library_outer(program_callback);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  start_work(argv[1]);
  from_root(loop, NULL);
  report(tallies, 2);
  return 0;
}
