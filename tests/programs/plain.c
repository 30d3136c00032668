// SPDX-License-Identifier: Apache-2.0
// plain SECONDS: outer() calls seventy() and thirty(). Linked in all the ways an ELF file can be
// (see CMakeLists.txt). thirty() is static: only .symtab knows its name.
#include "work.h"

// Where the linker shall make a second executable segment (plain_two_segments).
#ifdef SECOND_SEGMENT
#define IN_SECOND_SEGMENT __attribute__((section(SECOND_SEGMENT)))
#else
#define IN_SECOND_SEGMENT
#endif

// The linker makes the build id from what is loaded, not from the symbols: without this, a stripped
// program and its other shapes would have the same one, and could rightly lend each other names.
__attribute__((used)) static const char program_name[] = PROGRAM_NAME;

WORK_NOINLINE void seventy(void) {
  spin(WORK_SLICE);
}
static WORK_NOINLINE IN_SECOND_SEGMENT void thirty(void) {
  spin(WORK_SLICE);
}

static struct tally tallies[] = {{"seventy", 0}, {"thirty", 0}};

WORK_NOINLINE void outer(void) {
  if (draw(10) < 7) {
    seventy();
    tallies[0].iterations += WORK_SLICE;
  } else {
    thirty();
    tallies[1].iterations += WORK_SLICE;
  }
}

static void loop(void* unused) {
  (void)unused;
  while (work_left()) outer();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  start_work(argv[1]);
  from_root(loop, NULL);
  report(tallies, 2);
  return 0;
}
