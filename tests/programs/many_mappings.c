// SPDX-License-Identifier: Apache-2.0
// many_mappings SECONDS|PAGESp MAPPINGS [CHILDREN]: maps the first page of its own file executable
// so many times, apart from each other, forks so many children, which only wait, and works in
// busy().
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "work.h"

#define PLACE ((char*)0x200000000000)
#define APART (2 << 20)

static struct tally tally = {"busy", 0};

WORK_NOINLINE void busy(void) {
  spin(WORK_SLICE);
}

static void loop(void* unused) {
  (void)unused;
  while (work_left()) {
    busy();
    tally.iterations += WORK_SLICE;
  }
}

static int map_often(int times) {
  const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) return -1;
  for (int i = 0; i < times; ++i) {
    char* const place = PLACE + (size_t)i * APART;
    if (mmap(place, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, self, 0) !=
        place) {
      return -1;
    }
  }
  return close(self);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (map_often(atoi(argv[2])) != 0) {
    perror("mmap");
    return 1;
  }
  for (int i = argc > 3 ? atoi(argv[3]) : 0; i > 0; --i) {
    const pid_t child = fork();
    if (child < 0) {
      perror("fork");
      return 1;
    }
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
  }
  start_work(argv[1]);
  from_root(loop, NULL);
  report(&tally, 1);
  return 0;
}
