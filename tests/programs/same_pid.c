// SPDX-License-Identifier: Apache-2.0
// same_pid ROUNDS MILLISECONDS PROGRAM...: runs each PROGRAM with the arguments 0 MILLISECONDS, one
// after the other, ROUNDS times over, all of them as one and the same pid. Prints the pid before.
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

// clone3 chooses the pid (Linux 5.5). A pid that is free now may be taken by another process.
static pid_t fork_as(pid_t wanted) {
  struct clone_args args = {.exit_signal = SIGCHLD};
  if (wanted > 0) {
    args.set_tid = (uint64_t)(uintptr_t)&wanted;
    args.set_tid_size = 1;
  }
  return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  pid_t pid = fork_as(0);
  if (pid == 0) _exit(0);
  waitpid(pid, NULL, 0);
  printf("{\"reused\":%d}\n", (int)pid);
  fflush(stdout);
  for (int round = 0; round < atoi(argv[1]); ++round) {
    for (char** program = argv + 3; *program; ++program) {
      const pid_t child = fork_as(pid);
      if (child < 0) {
        perror("clone3");
        return 1;
      }
      if (child == 0) {
        execl(*program, *program, "0", argv[2], (char*)NULL);
        _exit(1);
      }
      int status;
      if (waitpid(child, &status, 0) < 0 || status != 0) return 1;
    }
  }
  report(NULL, 0);
  return 0;
}
