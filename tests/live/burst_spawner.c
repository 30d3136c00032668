// SPDX-License-Identifier: Apache-2.0
// burst_spawner PREFIX COUNT: starts 200 processes a second, PREFIX0 to PREFIX(COUNT-1) in turn,
// and tells each to live 1 to 30 ms (log-uniform: 8.5 ms on average). Until it is killed.
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPeriodNs = 5000000 };

// The same sequence in every run.
static uint32_t draw(void) {
  static uint32_t state = 12345;
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

// 1000 x 30^u for u uniform in [0, 1), without libm: u is cut into 64 steps.
static unsigned life_us(void) {
  double life = 1000;
  for (unsigned steps = draw() % 64; steps > 0; --steps) life *= 1.0545766;  // 30^(1/64)
  return (unsigned)life;
}

static void start(const char* prefix, unsigned number) {
  char path[4096];
  char life[16];
  snprintf(path, sizeof path, "%s%u", prefix, number);
  snprintf(life, sizeof life, "%u", life_us());
  char* arguments[] = {path, life, NULL};
  pid_t child;
  if (posix_spawn(&child, path, NULL, NULL, arguments, environ) != 0) exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const unsigned count = (unsigned)atoi(argv[2]);
  if (count == 0) return 2;
  signal(SIGCHLD, SIG_IGN);
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (unsigned number = 0;; ++number) {
    start(argv[1], number % count);
    next.tv_nsec += kPeriodNs;
    if (next.tv_nsec >= 1000000000) {
      next.tv_nsec -= 1000000000;
      ++next.tv_sec;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
}
