// SPDX-License-Identifier: Apache-2.0
// napper SECONDS: works for a fifth of a millisecond, sleeps for a second, and so on until it is
// so old. Prints READY when it has done all of it once, and needs no more of its file.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "work.h"

WORK_NOINLINE void nap(void) {
  spin(WORK_SLICE);
  sleep(1);
}

static void loop(void* unused) {
  (void)unused;
  nap();
  puts("READY");
  fflush(stdout);
  for (;;) nap();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  alarm((unsigned)atoi(argv[1]));
  from_root(loop, NULL);
  return 0;
}
