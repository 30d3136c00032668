// SPDX-License-Identifier: Apache-2.0
// spawn_loop COUNT PARALLEL PROGRAM ARG...: runs PROGRAM so often, so many at a time, and reports
// the CPU time of all of them together with its own.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int count = atoi(argv[1]);
  const int parallel = atoi(argv[2]);
  int running = 0;
  for (int started = 0; started < count || running > 0;) {
    if (started < count && running < parallel) {
      pid_t child;
      if (posix_spawn(&child, argv[3], NULL, NULL, argv + 3, environ) != 0) return 1;
      ++started;
      ++running;
    } else {
      int status;
      if (wait(&status) < 0 || status != 0) return 1;
      --running;
    }
  }
  report(NULL, 0);
  return 0;
}
