// SPDX-License-Identifier: Apache-2.0
// jit SECONDS|PAGESp [map] [dump] [shared] [child]: runs two functions from anonymous memory,
// jit_hot three times as much as jit_cold. Before READY it prints
//   {"jit_hot":"HEX","jit_cold":"HEX","size":N}
// With `map` it names them in /tmp/perf-PID.map; with `dump` in /tmp/jit-PID.dump, which it unlinks
// at once, as on lines 10 and 20 of jit_source.js; with `shared` they are in shared memory, written
// through one mapping and run through another; with `child` a child does the work.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loop_code.h"
#include "work.h"

typedef void (*loop_function)(uint64_t iterations);
typedef void (*touch_function)(char* page);

#define COLD_OFFSET 1024
#define CODE_BYTES 4096
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

// Linux, tools/perf/Documentation/jitdump-specification.txt.
struct dump_header {
  uint32_t magic, version, total_size, elf_mach, pad, pid;
  uint64_t timestamp, flags;
};
struct dump_record {
  uint32_t id, total_size;
  uint64_t timestamp;
};
struct dump_load {
  uint32_t pid, tid;
  uint64_t vma, code_addr, code_size, code_index;
};
struct dump_lines {
  uint64_t code_addr, nr_entry, addr;
  uint32_t line, discrim;
};

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void dump_function(FILE* dump, const char* name, uint32_t line, const unsigned char* at) {
  static const char kSource[] = "jit_source.js";
  const uint64_t size = sizeof kLoopCode;
  const struct dump_lines lines = {(uint64_t)at, 1, (uint64_t)at, line, 0};
  struct dump_record record = {2, sizeof record + sizeof lines + sizeof kSource, now()};
  fwrite(&record, sizeof record, 1, dump);
  fwrite(&lines, sizeof lines, 1, dump);
  fwrite(kSource, sizeof kSource, 1, dump);
  const struct dump_load load = {
      (uint32_t)getpid(), (uint32_t)getpid(), (uint64_t)at, (uint64_t)at, size, line};
  record.id = 0;
  record.total_size = (uint32_t)(sizeof record + sizeof load + strlen(name) + 1 + size);
  fwrite(&record, sizeof record, 1, dump);
  fwrite(&load, sizeof load, 1, dump);
  fwrite(name, strlen(name) + 1, 1, dump);
  fwrite(at, size, 1, dump);
}

static void write_dump(void) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
  FILE* const dump = fopen(path, "w+");
  if (!dump) exit(1);
  // The mapping says that the file is there.
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED) exit(1);
  const struct dump_header header = {0x4A695444, 1, sizeof header, 0, 0, (uint32_t)getpid(),
                                     now(),      0};
  fwrite(&header, sizeof header, 1, dump);
  dump_function(dump, tallies[0].function, 10, code);
  dump_function(dump, tallies[1].function, 20, code + COLD_OFFSET);
  fclose(dump);
  unlink(path);
}

static void put_code(unsigned char* to, const void* function) {
  memcpy(to, function, sizeof kLoopCode);
  memcpy(to + COLD_OFFSET, function, sizeof kLoopCode);
}

static void make_code(const void* function) {
  code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) exit(1);
  put_code(code, function);
  __builtin___clear_cache((char*)code, (char*)code + CODE_BYTES);
  if (mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC) != 0) exit(1);
}

static void make_shared_code(const void* function) {
  char path[64];
  snprintf(path, sizeof path, "/dev/shm/jit-code-%d", (int)getpid());
  const int memory = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (memory < 0 || unlink(path) != 0 || ftruncate(memory, CODE_BYTES) != 0) exit(1);
  unsigned char* const writable =
      mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
  if (code == MAP_FAILED || writable == MAP_FAILED) exit(1);
  put_code(writable, function);
  __builtin___clear_cache((char*)code, (char*)code + CODE_BYTES);
}

static bool has_word(int argc, char** argv, const char* word) {
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], word) == 0) return true;
  }
  return false;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const void* const function = strchr(argv[1], 'p') ? (const void*)kTouchCode : kLoopCode;
  if (has_word(argc, argv, "shared")) {
    make_shared_code(function);
  } else {
    make_code(function);
  }
  if (has_word(argc, argv, "map")) write_perf_map();
  if (has_word(argc, argv, "dump")) write_dump();
  if (has_word(argc, argv, "child")) {
    const pid_t child = fork();
    int status = 0;
    if (child < 0) return 1;
    if (child > 0) return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1;
  }
  printf("{\"jit_hot\":\"%lx\",\"jit_cold\":\"%lx\",\"size\":%zu}\n", (unsigned long)code,
         (unsigned long)(code + COLD_OFFSET), sizeof kLoopCode);
  start_work(argv[1]);
  from_root(loop, NULL);
  report(tallies, 2);
  return 0;
}
