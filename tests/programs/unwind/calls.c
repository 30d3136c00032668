// SPDX-License-Identifier: Apache-2.0
// Every shape of frame that compilers make of plain functions: leaf and not, saved registers,
// arguments on the stack, alloca and variable-length arrays, realigned stacks, tail calls, calls
// that do not return, deep recursion, callbacks out of libc, vfork.
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unwound.h"

static volatile uint64_t sink;

NOINLINE static uint64_t leaf(uint64_t x) {
  return x * 6364136223846793005u + 1;
}

// More live values than scratch registers: all callee-saved ones are pushed.
NOINLINE static uint64_t saves_registers(uint64_t x) {
  const uint64_t a = leaf(x), b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e);
  const uint64_t g = leaf(f);
  return leaf(a ^ b) + leaf(c ^ d) + leaf(e ^ f) + leaf(g ^ a) + (b & c) + (d & e) + (f & g);
}

NOINLINE static uint64_t takes_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                    uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j) {
  return leaf(a + b) ^ leaf(c + d) ^ leaf(e + f) ^ leaf(g + h) ^ leaf(i + j);
}

NOINLINE static uint64_t passes_many(uint64_t x) {
  return takes_many(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8, x + 9) +
         takes_many(leaf(x), leaf(x + 1), 2, 3, 4, 5, leaf(x + 6), 7, 8, 9);
}

NOINLINE static uint64_t sum(int count, ...) {
  va_list list;
  uint64_t total = 0;
  va_start(list, count);
  for (int i = 0; i < count; ++i) total += leaf(va_arg(list, uint64_t));
  va_end(list);
  return total;
}

NOINLINE static uint64_t large_frame(uint64_t x) {
  char buffer[20000];
  memset(buffer, (int)x, sizeof buffer);
  ESCAPE(buffer);
  return leaf((uint64_t)buffer[x % sizeof buffer]);
}

NOINLINE static uint64_t uses_alloca(size_t size) {
  char* const first = alloca(size);
  memset(first, 1, size);
  ESCAPE(first);
  const uint64_t middle = leaf((uint64_t)first[size / 2]);
  char* const second = alloca(size * 2 + 1);
  memset(second, 2, size * 2 + 1);
  ESCAPE(second);
  return middle + leaf((uint64_t)second[size]);
}

NOINLINE static uint64_t variable_length(size_t size) {
  uint64_t total = 0;
  for (size_t length = 1; length <= size; length += 3) {
    uint64_t array[length];
    for (size_t i = 0; i < length; ++i) array[i] = leaf(i);
    ESCAPE(array);
    total += array[length - 1];
  }
  return total;
}

NOINLINE static uint64_t realigned(uint64_t x) {
  ALIGNED(32) uint64_t block[8];
  for (size_t i = 0; i < 8; ++i) block[i] = leaf(x + i);
  ESCAPE(block);
  return block[x % 8];
}

// With arguments on the stack the unaligned frame must stay known: GCC's DRAP register.
NOINLINE static uint64_t realigned_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                        uint64_t f, uint64_t g, uint64_t h) {
  ALIGNED(64) uint64_t block[16];
  for (size_t i = 0; i < 16; ++i) block[i] = leaf(a + i) + takes_many(a, b, c, d, e, f, g, h, i, 1);
  ESCAPE(block);
  return block[(g + h) % 16];
}

NOINLINE static uint64_t realigned_variable(size_t size) {
  ALIGNED(64) uint64_t block[8];
  uint64_t array[size];
  for (size_t i = 0; i < size; ++i) array[i] = leaf(i);
  for (size_t i = 0; i < 8; ++i) block[i] = leaf(array[i % size]);
  ESCAPE(block);
  ESCAPE(array);
  return saves_registers(block[size % 8] + array[size - 1]);
}

NOINLINE static uint64_t tail_end(uint64_t x, uint64_t depth);
NOINLINE static uint64_t tail_middle(uint64_t x, uint64_t depth) {
  char buffer[64];
  memset(buffer, (int)x, sizeof buffer);
  ESCAPE(buffer);
  return tail_end(leaf(x) + (uint64_t)buffer[3], depth);
}
NOINLINE static uint64_t tail_end(uint64_t x, uint64_t depth) {
  return depth == 0 ? leaf(x) : tail_middle(x + 1, depth - 1);
}

NOINLINE static uint64_t recursion(uint64_t depth) {
  if (depth == 0) return leaf(7);
  return recursion(depth - 1) + depth;
}

NOINLINE static uint64_t realigned_recursion(uint64_t depth) {
  ALIGNED(32) uint64_t block[4] = {depth, depth + 1, depth + 2, depth + 3};
  ESCAPE(block);
  if (depth == 0) return block[1];
  return realigned_recursion(depth - 1) + block[depth % 4];
}

// The call is the last instruction: its return address lies behind the function.
static jmp_buf back;
__attribute__((noreturn)) NOINLINE static void never_returns(uint64_t x) {
  sink += leaf(x);
  longjmp(back, 1);
}
NOINLINE static void ends_in_call(uint64_t x) {
  if (x > 1) sink += saves_registers(x);
  never_returns(x);
}
NOINLINE static void ends_in_call_cold(uint64_t x) {
  if (__builtin_expect(x > 1000000, 0)) {
    ends_in_call(x);
    __builtin_unreachable();
  }
  sink += leaf(x);
}
NOINLINE static void noreturn_tails(void) {
  for (volatile uint64_t i = 0; i < 4; ++i) {
    if (setjmp(back) == 0) ends_in_call(i);
    if (setjmp(back) == 0) ends_in_call_cold(i * 1000000);
  }
}

static int by_value(const void* a, const void* b) {
  const uint64_t x = leaf(*(const uint64_t*)a), y = leaf(*(const uint64_t*)b);
  return x < y ? -1 : x > y;
}

NOINLINE static void out_of_libc(void) {
  uint64_t values[40];
  for (size_t i = 0; i < 40; ++i) values[i] = leaf(i);
  qsort(values, 40, sizeof values[0], by_value);
  const uint64_t key = values[13];
  const uint64_t* const found = bsearch(&key, values, 40, sizeof values[0], by_value);
  char text[200];
  snprintf(text, sizeof text, "%s %d %f %p", "text", 42, 2.5, (const void*)found);
  sink += strlen(text) + strtoul("12345", NULL, 10);
  free(malloc(100000));
}

NOINLINE static void vforks(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  int status;
  waitpid(child, &status, 0);
  sink += (uint64_t)status;
}

static uint64_t (*const pointers[])(uint64_t) = {leaf, saves_registers, passes_many, realigned,
                                                 large_frame};

NOINLINE static void all_kinds(void) {
  for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; ++i) sink += pointers[i](i);
  sink += sum(9, (uint64_t)1, (uint64_t)2, (uint64_t)3, (uint64_t)4, (uint64_t)5, (uint64_t)6,
              (uint64_t)7, (uint64_t)8, (uint64_t)9);
  sink += uses_alloca(100) + uses_alloca(5000) + variable_length(40);
  sink += realigned_many(1, 2, 3, 4, 5, 6, 7, 8) + realigned_variable(13);
  sink += tail_end(1, 12) + recursion(300) + realigned_recursion(100);
  noreturn_tails();
  out_of_libc();
  vforks();
}

int main(void) {
  for (volatile int i = 0; i < 3; ++i) all_kinds();
  return 0;
}
