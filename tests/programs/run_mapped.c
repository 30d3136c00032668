// SPDX-License-Identifier: Apache-2.0
// run_mapped FILE SECONDS|PAGESp: adds a page of code to the end of FILE, whatever FILE is, maps
// all of it executable and works in that page: code in a file that no ELF reader can make sense of.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop_code.h"
#include "work.h"

typedef void (*loop_function)(uint64_t iterations);
typedef void (*touch_function)(char* page);

static struct tally tallies[] = {{"run_mapped_code", 0}};

static WORK_NOINLINE void run_mapped_code(void* code) {
  if (work_pages.bytes != 0) {
    ((touch_function)code)(take_page());
    tallies[0].iterations += WORK_SLICE;
  } else {
    ((loop_function)code)(4 * WORK_SLICE);
    tallies[0].iterations += 4 * WORK_SLICE;
  }
}

static void loop(void* code) {
  while (work_left()) run_mapped_code(code);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
  const off_t end = lseek(fd, 0, SEEK_END);
  if (fd < 0 || end < 0) return 1;
  const off_t page = (end + 4095) / 4096 * 4096;
  const void* const code = strchr(argv[2], 'p') ? (const void*)kTouchCode : kLoopCode;
  if (pwrite(fd, code, sizeof kLoopCode, page) != (ssize_t)sizeof kLoopCode) return 1;
  if (ftruncate(fd, page + 4096) != 0) return 1;
  char* const file = mmap(NULL, (size_t)page + 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  if (file == MAP_FAILED) return 1;
  start_work(argv[2]);
  from_root(loop, file + page);
  report(tallies, 1);
  return 0;
}
