// SPDX-License-Identifier: Apache-2.0
// hold_memory FILE [LIBRARY]: maps a page of FILE, prints READY, and waits for a line of input.
// Then it makes the page one that is to be written back, maps LIBRARY executable and unmaps the
// page: if the file system of FILE does not answer, that takes for ever, and so long it holds the
// lock of its memory for which /proc/PID/maps and map_files wait. See hung_fuse. It is not to be
// put off by others between the two, or LIBRARY may be looked at before.
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void* map(const char* path, int access, int protection, int flags, size_t size) {
  const int file = open(path, access | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) {
    perror(path);
    exit(1);
  }
  if (size == 0) size = (size_t)status.st_size;
  void* const memory = mmap(NULL, size, protection, flags, file, 0);
  if (memory == MAP_FAILED) {
    perror("hold_memory: mmap");
    exit(1);
  }
  return memory;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  char* const page = map(argv[1], O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED, size);
  puts("READY");
  fflush(stdout);
  if (getchar() == EOF) return 1;
  page[0] = 1;
  const struct sched_param first = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) perror("hold_memory: SCHED_FIFO");
  if (argc > 2) map(argv[2], O_RDONLY, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0);
  mmap(page, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  puts("FREE");
  fflush(stdout);
  getchar();  // until the end of the input
  return 0;
}
