// SPDX-License-Identifier: Apache-2.0
// rootless SECONDS: works in memory that is no file's, with no frame pointer: nothing leads from
// there to its caller.
#include <string.h>
#include <sys/mman.h>

#include "work.h"

typedef void (*loop_function)(uint64_t iterations);

// void(uint64_t iterations), which counts down and leaves the frame pointer alone.
#if defined(__x86_64__)
static const unsigned char kCountDown[] = {
    0x48, 0xff, 0xcf,  // dec %rdi
    0x75, 0xfb,        // jnz, to the dec
    0xc3,              // ret
};
#else
static const unsigned int kCountDown[] = {
    0xf1000400,  // subs x0, x0, #1
    0x54ffffe1,  // b.ne, to the subs
    0xd65f03c0,  // ret
};
#endif

// Calls `function` with a frame pointer that is none.
static WORK_NOINLINE void call_astray(loop_function function, uint64_t iterations) {
#if defined(__x86_64__)
  __asm__ volatile(
      "push %%rbp\n\t"
      "mov $1, %%ebp\n\t"
      "call *%1\n\t"
      "pop %%rbp"
      : "+D"(iterations)
      : "r"(function)
      : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
#else
  __asm__ volatile(
      "stp x29, x30, [sp, #-16]!\n\t"
      "mov x9, %1\n\t"
      "mov x0, %0\n\t"
      "mov x29, #1\n\t"
      "blr x9\n\t"
      "ldp x29, x30, [sp], #16"
      :
      : "r"(iterations), "r"(function)
      : "x0", "x1", "x2", "x3", "x9", "x10", "x11", "x16", "x17", "memory", "cc");
#endif
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  unsigned char* const code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, kCountDown, sizeof kCountDown);
  __builtin___clear_cache((char*)code, (char*)code + 4096);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  struct tally tally = {"astray", 0};
  start_work(argv[1]);
  while (work_left()) {
    call_astray((loop_function)(void*)code, 4 * WORK_SLICE);
    tally.iterations += 4 * WORK_SLICE;
  }
  report(&tally, 1);
  return 0;
}
