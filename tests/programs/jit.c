// SPDX-License-Identifier: Apache-2.0
// jit SECONDS|PAGESp [map]: runs two functions from anonymous memory, jit_hot three times as much
// as jit_cold. With `map` it names them in /tmp/perf-PID.map; before READY it prints
//   {"jit_hot":"HEX","jit_cold":"HEX","size":N}
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop_code.h"
#include "work.h"

typedef void (*loop_function)(uint64_t iterations);
typedef void (*touch_function)(char* page);

#define COLD_OFFSET 1024
static unsigned char* code;
static struct tally tallies[] = {{"jit_hot", 0}, {"jit_cold", 0}};

static WORK_NOINLINE void enter_jit(void) {
  const int cold = draw(4) == 0;
  void* const function = code + (cold ? COLD_OFFSET : 0);
  if (work_pages.bytes != 0) {
    ((touch_function)function)(take_page());
    tallies[cold].iterations += WORK_SLICE;
  } else {
    ((loop_function)function)(4 * WORK_SLICE);
    tallies[cold].iterations += 4 * WORK_SLICE;
  }
}

static void loop(void* unused) {
  (void)unused;
  while (work_left()) enter_jit();
}

static void write_perf_map(void) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  FILE* const map = fopen(path, "w");
  if (!map) exit(1);
  fprintf(map, "%lx %zx jit_hot\n", (unsigned long)code, sizeof kLoopCode);
  fprintf(map, "%lx %zx jit_cold\n", (unsigned long)(code + COLD_OFFSET), sizeof kLoopCode);
  fclose(map);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  const void* const function = strchr(argv[1], 'p') ? (const void*)kTouchCode : kLoopCode;
  memcpy(code, function, sizeof kLoopCode);
  memcpy(code + COLD_OFFSET, function, sizeof kLoopCode);
  __builtin___clear_cache((char*)code, (char*)code + 4096);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  if (argc > 2 && strcmp(argv[2], "map") == 0) write_perf_map();
  printf("{\"jit_hot\":\"%lx\",\"jit_cold\":\"%lx\",\"size\":%zu}\n", (unsigned long)code,
         (unsigned long)(code + COLD_OFFSET), sizeof kLoopCode);
  start_work(argv[1]);
  from_root(loop, NULL);
  report(tallies, 2);
  return 0;
}
