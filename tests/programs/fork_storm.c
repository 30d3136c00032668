// SPDX-License-Identifier: Apache-2.0
// fork_storm COUNT: works until SIGTERM. On SIGUSR1 it forks so many children, one after the other,
// each of which ends at once, and prints DONE.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static volatile sig_atomic_t is_asked;
static int count;

static void ask(int signal) {
  (void)signal;
  is_asked = 1;
}

static void storm(void) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0 || waitpid(child, NULL, 0) != child) {
      perror("fork");
      exit(1);
    }
  }
  puts("DONE");
  fflush(stdout);
}

static void loop(void* unused) {
  (void)unused;
  while (work_left()) {
    spin(WORK_SLICE);
    if (!is_asked) continue;
    is_asked = 0;
    storm();
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  count = atoi(argv[1]);
  signal(SIGUSR1, ask);
  start_work("0");
  from_root(loop, NULL);
  return 0;
}
