// SPDX-License-Identifier: Apache-2.0
// fork_children SECONDS: three children named child-0, child-1, child-2 work so long each, in
// functions of their own, while their parent waits.
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

WORK_NOINLINE void child_work_0(void) {
  spin(WORK_SLICE);
}
WORK_NOINLINE void child_work_1(void) {
  spin(WORK_SLICE);
}
WORK_NOINLINE void child_work_2(void) {
  spin(WORK_SLICE);
}

static void (*const works[])(void) = {child_work_0, child_work_1, child_work_2};

static void loop(void* work) {
  while (work_left()) ((void (*)(void))work)();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  start_work("0");
  for (int i = 0; i < 3; ++i) {
    if (fork() == 0) {
      char name[16];
      snprintf(name, sizeof name, "child-%d", i);
      prctl(PR_SET_NAME, name);
      start_work(argv[1]);  // what a parent has locked is not its children's
      from_root(loop, (void*)works[i]);
      _exit(0);
    }
  }
  while (wait(NULL) > 0) continue;
  report(NULL, 0);
  return 0;
}
