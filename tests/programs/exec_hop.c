// SPDX-License-Identifier: Apache-2.0
// exec_ping, exec_pong HOPS MILLISECONDS|PAGESp: works in ping_work() (pong_work()) so long, then
// executes the other one, which stands beside it, in the same process. Both are linked at the
// same fixed addresses, so that mappings kept from the image before give a wrong name, not none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

WORK_NOINLINE void JOIN(HOP_SELF, _work)(void) {
  spin(WORK_SLICE);
}

// In pages, or CPU time of this image: the process's clock runs on through an exec.
static void loop(void* milliseconds) {
  if (work_by_pages(milliseconds)) {
    while (work_left()) JOIN(HOP_SELF, _work)();
    return;
  }
  const uint64_t end = used_cpu_ns() + strtoull(milliseconds, NULL, 10) * 1000000;
  while (used_cpu_ns() < end) JOIN(HOP_SELF, _work)();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  from_root(loop, argv[2]);
  const int hops_left = atoi(argv[1]);
  if (hops_left == 0) {
    report(NULL, 0);
    return 0;
  }
  char path[4096];
  snprintf(path, sizeof path, "%s", argv[0]);
  char* const slash = strrchr(path, '/');
  if (!slash) return 2;
  snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "exec_" TEXT(HOP_OTHER));
  char hops[16];
  snprintf(hops, sizeof hops, "%d", hops_left - 1);
  execl(path, path, hops, argv[2], (char*)NULL);
  perror(path);
  return 1;
}
