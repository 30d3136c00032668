// SPDX-License-Identifier: Apache-2.0
// What the profiled programs share: work whose cost is known beforehand, a stack whose root a
// frame-pointer walk can reach, and a report of the truth for the tests to compare with.
//
// A program prints "READY" when its work begins, works until it has used the CPU seconds of its
// argument (0: until SIGTERM), and then prints one line of JSON:
//   {"pid":N,"cpu_ns":N,"iterations":{"function":N,...}}
//
// Where the argument is a number of pages, as in "300p", a program works without a clock: each
// WORK_SLICE of iterations is one write to a fresh page, and so one page fault in the function that
// asked for it. Nothing else in such a function faults: all memory is there and locked before. With
// "300p-told" it waits for SIGUSR1 first, after READY, and for SIGTERM last, after its report.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WORK_NOINLINE __attribute__((noinline, noclone))

// About 0.2 ms: long against a chain of 300 calls (2 us), short against a sampling period.
#define WORK_SLICE 200000ULL

// The fresh pages, in address order; bytes is the size of one, 0 where work takes time.
struct work_pages {
  char* next;  // of all threads: taken by atomic addition
  char* end;
  size_t bytes;
};
extern struct work_pages work_pages;

static inline __attribute__((always_inline)) char* take_page(void) {
  return __atomic_fetch_add(&work_pages.next, work_pages.bytes, __ATOMIC_RELAXED);
}

// Spends `iterations` times the same number of cycles, or a page for each WORK_SLICE of them. The
// multiplications wait for each other, so the cost is their latency wherever the loop was placed
// and whoever inlined it; equal counts are equal times, and a share of the iterations is a share of
// the samples.
static inline __attribute__((always_inline)) void spin(uint64_t iterations) {
  // gcc drops the frame of a leaf function, -fno-omit-frame-pointer or not, unless it is used.
  __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
  if (work_pages.bytes != 0) {
    for (uint64_t i = iterations / WORK_SLICE; i > 0; --i) *(volatile char*)take_page() = 1;
    return;
  }
  uint64_t x = iterations;
  for (uint64_t i = 0; i < iterations; ++i) {
    x = x * 6364136223846793005ULL + 1;
    __asm__ volatile("" : "+r"(x));
  }
}

// Keeps a call that stands before it from becoming a jump.
#define WORK_NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

// Calls work(argument) with a null frame pointer, and has no call frame information: so it is the
// outermost frame of a complete stack, whatever is around main.
void from_root(void (*work)(void*), void* argument);

// Prints READY and begins to count; `amount` is the text of the argument.
void start_work(const char* amount);

// False once the CPU time or the pages are used up or SIGTERM came.
bool work_left(void);

// Whether `amount` is a number of pages; they are fresh now. start_work() calls it.
bool work_by_pages(const char* amount);

// Uniform in [0, limit); the same sequence in every run. Random order keeps a program's rhythm
// from falling in step with the sampling period.
unsigned draw(unsigned limit);

struct tally {
  const char* function;
  uint64_t iterations;
};

// CPU time of this process, and of the children it has waited for.
uint64_t used_cpu_ns(void);

// Prints the line of JSON.
void report(const struct tally* tallies, size_t count);

#ifdef __cplusplus
}
#endif
