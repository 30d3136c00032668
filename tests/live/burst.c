// SPDX-License-Identifier: Apache-2.0
// burst MICROSECONDS: works for so long in frames that only call frame information describes, some
// of them libc's, and is over.
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint64_t sink;

NOINLINE static uint64_t work(uint64_t x) {
  for (int i = 0; i < 2000; ++i) x = x * 6364136223846793005u + 1;
  return x;
}

static int compare(const void* a, const void* b) {
  sink += work((uint64_t)(uintptr_t)a);
  return *(const int*)a - *(const int*)b;
}

NOINLINE static uint64_t descend(unsigned depth) {
  if (depth > 0) return descend(depth - 1) + depth;
  int numbers[] = {5, 3, 8, 1, 9, 2};
  qsort(numbers, sizeof numbers / sizeof numbers[0], sizeof numbers[0], compare);
  return work((uint64_t)numbers[0]);
}

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int64_t end = now_us() + atoll(argv[1]);
  while (now_us() < end) sink += descend(10);
  return 0;
}
