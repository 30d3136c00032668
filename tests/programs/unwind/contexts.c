// SPDX-License-Identifier: Apache-2.0
// Several stacks in one thread: swapcontext, setcontext. The call frame information of glibc's
// __start_context, where such a stack ends, does not say so: no unwinder can know these ends.
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "unwound.h"
#include "work.h"

enum { kStackSize = 64 * 1024, kPage = 4096 };

static ucontext_t main_context;
static ucontext_t contexts[2];

NOINLINE static void yield_to(int self, int depth) {
  work((uint64_t)depth);
  if (depth > 0) {
    yield_to(self, depth - 1);
    return;
  }
  swapcontext(&contexts[self], &contexts[1 - self]);
  work(2);
}

static void take_turns(int self) {
  for (int i = 1; i < 6; ++i) yield_to(self, i);
  // Returns into libc, which goes on with uc_link.
}

// Between guard pages, so that the mapping is the stack's own.
static void* new_stack(void) {
  char* const area =
      mmap(NULL, kStackSize + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) exit(1);
  if (mprotect(area + kPage, kStackSize, PROT_READ | PROT_WRITE) != 0) exit(1);
  return area + kPage;
}

NOINLINE static void contexts_in_turn(void) {
  for (volatile int i = 0; i < 2; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = new_stack();
    contexts[i].uc_stack.ss_size = kStackSize;
    contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], (void (*)(void))take_turns, 1, i);
  }
  swapcontext(&main_context, &contexts[0]);
  work(3);
}

NOINLINE static void context_in_place(void) {
  ucontext_t context;
  volatile int left = 3;
  getcontext(&context);
  work((uint64_t)left);
  if (left-- > 0) setcontext(&context);
}

int main(void) {
  context_in_place();
  contexts_in_turn();
  return 0;
}
