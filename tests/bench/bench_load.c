// SPDX-License-Identifier: Apache-2.0
// What the benchmarks profile: a CPU kept busy under a stack of known shape, by a program that
// measures itself for how long each interruption stops it.
//
//   bench_load CPU stack DEPTH FRAME_BYTES   DEPTH frames, then a busy loop, for good
//   bench_load CPU paths                     random paths through eight functions, one after
//   another
//
// Prints READY when busy. SIGUSR1 forgets what was measured so far. SIGTERM ends it with one line:
//   {"frame_bytes":N,"interruptions":N,"median_ns":N}
//
// Compiled with OMITS_FRAME_POINTERS where it is to have none, with frames of the same sizes.
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

// A driver that dies must not leave a busy program behind.
#define LONGEST_LIFE_SECONDS 900

// Gaps in time are counted in steps of 10 ns. Shorter ones are turns of the loop and the noise of
// the hardware (no timer interrupt takes less than a microsecond), longer ones are other tasks.
#define STEP_NS 10
#define SHORTEST_NS 1000
#define LONGEST_NS 100000
#define STEPS (LONGEST_NS / STEP_NS)

static uint32_t gaps[STEPS];
static size_t frame_bytes;
static double ns_per_count;
static volatile sig_atomic_t told_to_stop;
static volatile sig_atomic_t told_to_forget;

static void note_signal(int signal_number) {
  if (signal_number == SIGTERM) told_to_stop = 1;
  if (signal_number == SIGUSR1) told_to_forget = 1;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

// One instruction: a call would change the stack.
static inline uint64_t counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t count;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#endif
}

static void calibrate(void) {
  const uint64_t start_ns = now_ns();
  const uint64_t start = counter();
  while (now_ns() - start_ns < 20000000) {
  }
  ns_per_count = (double)(now_ns() - start_ns) / (double)(counter() - start);
}

static inline __attribute__((always_inline)) void watch(uint64_t turns) {
#if !defined(OMITS_FRAME_POINTERS)
  // gcc drops the frame of a leaf function unless it is used.
  __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
#endif
  uint64_t before = counter();
  for (; turns > 0 && !told_to_stop; --turns) {
    const uint64_t now = counter();
    const double gap_ns = (double)(now - before) * ns_per_count;
    if (gap_ns >= SHORTEST_NS && gap_ns < LONGEST_NS) ++gaps[(int)gap_ns / STEP_NS];
    if (told_to_forget) {
      told_to_forget = 0;
      for (int i = 0; i < STEPS; ++i) gaps[i] = 0;
    }
    before = counter();
  }
}

// The stack pointer; the same distance from the frame at every depth of a function.
static inline __attribute__((always_inline)) uintptr_t stack_pointer(void) {
  uintptr_t sp;
#if defined(__x86_64__)
  __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
#else
  __asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
  return sp;
}

// How far the stack has grown since the last call, from one frame of a function to its next.
static inline __attribute__((always_inline)) void measure_frame(void) {
  static uintptr_t above;
  const uintptr_t here = stack_pointer();
  frame_bytes = above - here;
  above = here;
}

WORK_NOINLINE static void bottom(void) {
  watch(UINT64_MAX);
}

// The least that is common: return address, frame pointer, one saved register, 32 bytes with what
// aligns the stack. Without the frame pointer it takes a local variable to get there.
WORK_NOINLINE static void small_frame(unsigned depth) {
#if defined(OMITS_FRAME_POINTERS)
  char own[16];
  __asm__ volatile("" : : "r"(own) : "memory");
#endif
  measure_frame();
  if (depth > 1) {
    small_frame(depth - 1);
  } else {
    bottom();
  }
  // Needed after the call, so it has to be saved.
  __asm__ volatile("" : : "r"(depth) : "memory");
}

WORK_NOINLINE static void large_frame(unsigned depth) {
  volatile char own[176] = {0};
  measure_frame();
  if (depth > 1) {
    large_frame(depth - 1);
  } else {
    bottom();
  }
  own[0] = own[1];
}

// Eight functions that call each other at random: nearly every path is another stack.
typedef void step(unsigned depth);
static step* const steps[8];

static inline __attribute__((always_inline)) void go_on(unsigned depth) {
  if (depth > 0) {
    steps[draw(8)](depth - 1);
  } else {
    watch(2000);
  }
  WORK_NO_TAIL_CALL();
}
#define STEP(name)                                 \
  WORK_NOINLINE static void name(unsigned depth) { \
    go_on(depth);                                  \
  }
STEP(parse_request)
STEP(find_route)
STEP(check_session)
STEP(read_row)
STEP(decode_field)
STEP(render_template)
STEP(escape_text)
STEP(write_response)
static step* const steps[8] = {parse_request, find_route,      check_session, read_row,
                               decode_field,  render_template, escape_text,   write_response};

struct shape {
  unsigned depth;
  unsigned bytes;  // of a frame; 0: paths
};

static void run(void* argument) {
  const struct shape* shape = argument;
  while (!told_to_stop) {
    if (shape->bytes == 0) {
      steps[draw(8)](10 + draw(30));
    } else if (shape->depth == 0) {
      bottom();
    } else if (shape->bytes < 128) {
      small_frame(shape->depth);
    } else {
      large_frame(shape->depth);
    }
  }
}

static void report_gaps(void) {
  uint64_t total = 0;
  for (int i = 0; i < STEPS; ++i) total += gaps[i];
  uint64_t below = 0;
  int median = 0;
  while (median < STEPS - 1 && (below += gaps[median]) * 2 < total) ++median;
  printf("{\"frame_bytes\":%zu,\"interruptions\":%" PRIu64 ",\"median_ns\":%d}\n", frame_bytes,
         total, median * STEP_NS);
}

int main(int argc, char** argv) {
  struct shape shape = {0, 0};
  if (argc == 5 && strcmp(argv[2], "stack") == 0) {
    shape.depth = (unsigned)atoi(argv[3]);
    shape.bytes = (unsigned)atoi(argv[4]);
  } else if (argc != 3 || strcmp(argv[2], "paths") != 0) {
    return 2;
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET((size_t)atoi(argv[1]), &cpus);
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
    perror("bench_load: sched_setaffinity");
    return 1;
  }
  signal(SIGTERM, note_signal);
  signal(SIGUSR1, note_signal);
  alarm(LONGEST_LIFE_SECONDS);
  calibrate();
  puts("READY");
  fflush(stdout);
  from_root(run, &shape);
  report_gaps();
  return 0;
}
