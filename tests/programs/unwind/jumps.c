// SPDX-License-Identifier: Apache-2.0
// Calls that are left without a return: longjmp, siglongjmp.
#include <setjmp.h>
#include <stdint.h>

#include "unwound.h"
#include "work.h"

static jmp_buf outer_buffer;
static sigjmp_buf inner_buffer;

NOINLINE static void descend(int depth) {
  ALIGNED(64) uint64_t block[8] = {work((uint64_t)depth)};
  ESCAPE(block);
  if (depth == 0) longjmp(outer_buffer, 1);
  if (depth == 5 && sink % 2 == 0) siglongjmp(inner_buffer, 2);
  descend(depth - 1);
  sink += block[0];
}

NOINLINE static void jump_inside(int depth) {
  if (sigsetjmp(inner_buffer, 1) == 0) descend(depth);
  work(1);
  descend(3);
}

NOINLINE static void longjmps(void) {
  for (volatile int i = 0; i < 6; ++i) {
    if (setjmp(outer_buffer) == 0) jump_inside(10 + i);
    work((uint64_t)i);
  }
}

// From the function that called setjmp itself.
NOINLINE static void jump_in_place(void) {
  jmp_buf buffer;
  volatile int left = 3;
  if (setjmp(buffer) != 0) work((uint64_t)left);
  if (left-- > 0) longjmp(buffer, 1);
}

int main(void) {
  for (int i = 0; i < 10; ++i) {
    longjmps();
    jump_in_place();
  }
  return 0;
}
