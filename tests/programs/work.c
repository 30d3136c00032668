// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// A test that dies must not leave a busy program behind.
#define LONGEST_LIFE_SECONDS 120

// clang-format off
#if defined(__x86_64__)
__asm__(
    ".text\n.globl from_root\n.type from_root, @function\n"
    "from_root:\n"
    "  push %rbp\n"
    "  xor %ebp, %ebp\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size from_root, . - from_root\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl from_root\n.type from_root, %function\n"
    "from_root:\n"
    "  stp x29, x30, [sp, #-16]!\n"
    "  mov x29, xzr\n"
    "  mov x9, x0\n"
    "  mov x0, x1\n"
    "  blr x9\n"
    "  ldp x29, x30, [sp], #16\n"
    "  ret\n"
    ".size from_root, . - from_root\n");
#else
#error "x86_64 and arm64 only"
#endif
// clang-format on

static uint64_t budget_ns;
static volatile sig_atomic_t told_to_stop;

static void stop(int signal_number) {
  (void)signal_number;
  told_to_stop = 1;
}

static uint64_t process_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

void start_work(const char* cpu_seconds) {
  signal(SIGTERM, stop);
  alarm(LONGEST_LIFE_SECONDS);
  budget_ns = (uint64_t)(strtod(cpu_seconds, NULL) * 1e9);
  puts("READY");
  fflush(stdout);
}

bool work_left(void) {
  return !told_to_stop && (budget_ns == 0 || process_ns() < budget_ns);
}

unsigned draw(unsigned limit) {
  static __thread uint64_t state = 88172645463325252ULL;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state % limit);
}

uint64_t used_cpu_ns(void) {
  struct rusage children;
  getrusage(RUSAGE_CHILDREN, &children);
  const struct timeval* const times[] = {&children.ru_utime, &children.ru_stime};
  uint64_t total = process_ns();
  for (size_t i = 0; i < 2; ++i)
    total += (uint64_t)times[i]->tv_sec * 1000000000ULL + (uint64_t)times[i]->tv_usec * 1000ULL;
  return total;
}

void report(const struct tally* tallies, size_t count) {
  printf("{\"pid\":%d,\"cpu_ns\":%" PRIu64 ",\"iterations\":{", (int)getpid(), used_cpu_ns());
  for (size_t i = 0; i < count; ++i)
    printf("%s\"%s\":%" PRIu64, i ? "," : "", tallies[i].function, tallies[i].iterations);
  puts("}}");
  fflush(stdout);
}
