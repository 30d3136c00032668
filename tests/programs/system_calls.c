// SPDX-License-Identifier: Apache-2.0
// system_calls SECONDS: read_zeros() spends nearly all of its time in the kernel, in read(2).
#include <fcntl.h>
#include <sys/syscall.h>

#include "work.h"

static char buffer[1 << 18];
static int zeros;
static struct tally tallies[] = {{"read_zeros", 0}};

// Without libc, whose wrapper has no frame and would hide its caller.
static inline __attribute__((always_inline)) long raw_read(int fd, void* to, size_t size) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"((long)SYS_read), "D"((long)fd), "S"(to), "d"(size)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long number __asm__("x8") = SYS_read;
  register long x0 __asm__("x0") = fd;
  register void* x1 __asm__("x1") = to;
  register size_t x2 __asm__("x2") = size;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(number), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

WORK_NOINLINE void read_zeros(void) {
  __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
  for (int i = 0; i < 10; ++i) raw_read(zeros, buffer, sizeof buffer);
}

static WORK_NOINLINE void ask_kernel(void) {
  read_zeros();
  tallies[0].iterations += 10;
}

static void loop(void* unused) {
  (void)unused;
  while (work_left()) ask_kernel();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  zeros = open("/dev/zero", O_RDONLY);
  if (zeros < 0) return 1;
  start_work(argv[1]);
  from_root(loop, NULL);
  report(tallies, 1);
  return 0;
}
