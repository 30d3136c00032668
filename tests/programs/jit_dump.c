// SPDX-License-Identifier: Apache-2.0
// jit_dump SECONDS DIRECTORY: runs code from anonymous memory that it announces in a jitdump,
// DIRECTORY/jit-PID.dump.
// - dump_hot runs three times as much as dump_cold. In both, three quarters of the work are in line
//   11 of the file hot.src or cold.src, and a quarter in line 12.
// - dump_first and dump_second take turns at one address; first_turn and second_turn call them.
// - dump_moved was announced at another address and has moved.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "two_loops_code.h"
#include "work.h"

typedef void (*two_loops)(uint64_t first, uint64_t second);

enum place { HOT, COLD, TURNS, MOVED, PLACES };
#define PLACE_SIZE 1024
#define TURN_NS 20000000ULL

static unsigned char* code;
static int dump;
static struct tally tallies[] = {
    {"dump_hot", 0}, {"dump_cold", 0}, {"dump_first", 0}, {"dump_second", 0}, {"dump_moved", 0}};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

// A record under way.
static unsigned char record[512];
static size_t record_size;

static void put(const void* bytes, size_t size) {
  memcpy(record + record_size, bytes, size);
  record_size += size;
}
static void put_u32(uint32_t value) {
  put(&value, sizeof value);
}
static void put_u64(uint64_t value) {
  put(&value, sizeof value);
}

static void begin_record(uint32_t id) {
  record_size = 0;
  put_u32(id);
  put_u32(0);
  put_u64(now());
}
static void end_record(void) {
  const uint32_t size = (uint32_t)record_size;
  memcpy(record + 4, &size, sizeof size);
  if (write(dump, record, record_size) != (ssize_t)record_size) exit(1);
}

static void begin_dump(const char* directory) {
  char path[256];
  snprintf(path, sizeof path, "%s/jit-%d.dump", directory, (int)getpid());
  dump = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  if (dump < 0) exit(1);
  // Whoever looks on learns of the file by this.
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED) exit(1);
  record_size = 0;
  put_u32(0x4a695444);
  put_u32(1);
  put_u32(40);
  put_u32(0);
  put_u32(0);
  put_u32((uint32_t)getpid());
  put_u64(now());
  put_u64(0);
  if (write(dump, record, record_size) != (ssize_t)record_size) exit(1);
}

static void put_line(uint64_t address, uint32_t line, const char* file) {
  put_u64(address);
  put_u32(line);
  put_u32(0);
  put(file, strlen(file) + 1);
}

static void announce_lines(uint64_t address, const char* file) {
  begin_record(2);
  put_u64(address);
  put_u64(4);
  put_line(address, 10, file);
  put_line(address + FIRST_LOOP, 11, "\xff");
  put_line(address + SECOND_LOOP, 12, "\xff");
  put_line(address + AFTER_LOOPS, 13, "\xff");
  end_record();
}

static void announce(uint64_t address, const char* name) {
  static uint64_t index;
  begin_record(0);
  put_u32((uint32_t)getpid());
  put_u32((uint32_t)getpid());
  put_u64(address);
  put_u64(address);
  put_u64(sizeof kTwoLoopsCode);
  put_u64(index++);
  put(name, strlen(name) + 1);
  put(kTwoLoopsCode, sizeof kTwoLoopsCode);
  end_record();
}

static void announce_move(uint64_t from, uint64_t to) {
  begin_record(1);
  put_u32((uint32_t)getpid());
  put_u32((uint32_t)getpid());
  put_u64(to);
  put_u64(from);
  put_u64(to);
  put_u64(sizeof kTwoLoopsCode);
  put_u64(0);
  end_record();
}

static uint64_t address_of(enum place place) {
  return (uint64_t)(uintptr_t)code + (uint64_t)place * PLACE_SIZE;
}

static void run(enum place place, size_t tally) {
  ((two_loops)(void*)(code + place * PLACE_SIZE))(3 * WORK_SLICE, WORK_SLICE);
  tallies[tally].iterations += 4 * WORK_SLICE;
}

static WORK_NOINLINE void enter_jit(void) {
  const int cold = draw(4) == 0;
  run(cold ? COLD : HOT, cold);
  WORK_NO_TAIL_CALL();
}
static WORK_NOINLINE void enter_moved(void) {
  run(MOVED, 4);
  WORK_NO_TAIL_CALL();
}
static WORK_NOINLINE void first_turn(void) {
  run(TURNS, 2);
  WORK_NO_TAIL_CALL();
}
static WORK_NOINLINE void second_turn(void) {
  run(TURNS, 3);
  WORK_NO_TAIL_CALL();
}

static void loop(void* unused) {
  (void)unused;
  uint64_t turn_began = 0;
  int is_first = 0;
  while (work_left()) {
    if (now() - turn_began > TURN_NS) {
      is_first = !is_first;
      announce(address_of(TURNS), is_first ? "dump_first" : "dump_second");
      turn_began = now();
    }
    enter_jit();
    enter_jit();
    if (is_first) {
      first_turn();
    } else {
      second_turn();
    }
    enter_moved();
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const size_t size = (PLACES + 1) * PLACE_SIZE;
  code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  for (size_t i = 0; i < PLACES; ++i)
    memcpy(code + i * PLACE_SIZE, kTwoLoopsCode, sizeof kTwoLoopsCode);
  __builtin___clear_cache((char*)code, (char*)code + size);
  if (mprotect(code, size, PROT_READ | PROT_EXEC) != 0) return 1;
  begin_dump(argv[2]);
  announce_lines(address_of(HOT), "/made/up/hot.src");
  announce(address_of(HOT), "dump_hot");
  announce_lines(address_of(COLD), "/made/up/cold.src");
  announce(address_of(COLD), "dump_cold");
  announce_lines(address_of(PLACES), "/made/up/moved.src");
  announce(address_of(PLACES), "dump_moved");
  announce_move(address_of(PLACES), address_of(MOVED));
  start_work(argv[1]);
  from_root(loop, NULL);
  report(tallies, sizeof tallies / sizeof tallies[0]);
  return 0;
}
