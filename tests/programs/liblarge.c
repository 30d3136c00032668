// SPDX-License-Identifier: Apache-2.0
// Frames of 40 KB beyond 512 MiB of text, which only call frame information can unwind.
#include "work.h"

#define FAR WORK_NOINLINE __attribute__((section(".far_text")))

void far_leaf(void);
void far_frames(unsigned depth);

FAR void far_leaf(void) {
  spin(WORK_SLICE);
}

FAR void far_frames(unsigned depth) {
  char frame[40000];
  __asm__ volatile("" : : "r"(frame) : "memory");
  if (depth > 0) {
    far_frames(depth - 1);
  } else {
    far_leaf();
  }
  __asm__ volatile("" : : "r"(frame) : "memory");
}
