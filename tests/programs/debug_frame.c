// SPDX-License-Identifier: Apache-2.0
// debug_frame SECONDS: main() calls outer(), that middle(), that inner(). Compiled without
// .eh_frame and without frame pointers: only .debug_frame, which is in a file of its own, tells how
// to unwind it. The calls are indirect, so that the code does not tell who calls whom either.
#include "work.h"

// What the register holds is no frame pointer.
static inline __attribute__((always_inline)) void spoil_frame_pointer(void) {
#if defined(__x86_64__)
  __asm__ volatile("mov $1, %%ebp" : : : "rbp");
#else
  __asm__ volatile("mov x29, #1" : : : "x29");
#endif
}

static struct tally tally = {"inner", 0};

static WORK_NOINLINE void inner(void) {
  spoil_frame_pointer();
  tally.iterations += WORK_SLICE;
  if (work_pages.bytes != 0) {
    *(volatile char*)take_page() = 1;
    return;
  }
  uint64_t x = WORK_SLICE;
  for (uint64_t i = 0; i < WORK_SLICE; ++i) {
    x = x * 6364136223846793005ULL + 1;
    __asm__ volatile("" : "+r"(x));
  }
}

static void (*volatile call_inner)(void) = inner;

static WORK_NOINLINE void middle(void) {
  spoil_frame_pointer();
  call_inner();
  WORK_NO_TAIL_CALL();
}

static void (*volatile call_middle)(void) = middle;

static WORK_NOINLINE void outer(void) {
  spoil_frame_pointer();
  while (work_left()) call_middle();
}

static void (*volatile call_outer)(void) = outer;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  start_work(argv[1]);
  call_outer();
  report(&tally, 1);
  return 0;
}
