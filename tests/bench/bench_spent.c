// SPDX-License-Identifier: Apache-2.0
// bench_spent FILE COMMAND...: runs COMMAND and writes into FILE, as lines of JSON, its pid and,
// when it has ended, what it and its children used:
//   {"pid":N}
//   {"status":N,"user_us":N,"system_us":N,"peak_kb":N}
//
// A program of its own because the peak of a process begins with that of whatever executed it, and
// the driver's is larger than some of what it measures.
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t microseconds(struct timeval time) {
  return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  FILE* out = fopen(argv[1], "we");
  if (!out) {
    perror(argv[1]);
    return 1;
  }
  signal(SIGINT, SIG_IGN);  // for the command, not for us
  const pid_t pid = fork();
  if (pid < 0) {
    perror("bench_spent: fork");
    return 1;
  }
  if (pid == 0) {
    signal(SIGINT, SIG_DFL);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    _exit(127);
  }
  fprintf(out, "{\"pid\":%d}\n", (int)pid);
  fflush(out);
  int status = 0;
  struct rusage usage;
  if (wait4(pid, &status, 0, &usage) != pid) {
    perror("bench_spent: wait4");
    return 1;
  }
  fprintf(out,
          "{\"status\":%d,\"user_us\":%" PRId64 ",\"system_us\":%" PRId64 ",\"peak_kb\":%ld}\n",
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          microseconds(usage.ru_utime), microseconds(usage.ru_stime), usage.ru_maxrss);
  return fclose(out) == 0 ? 0 : 1;
}
