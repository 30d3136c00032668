// SPDX-License-Identifier: Apache-2.0
// page_faults PAGES [told]: writes once to each of so many fresh pages, 60, 30 and 10 percent of
// them in three functions, one after the other, below three others. Each write is a page fault, and
// nothing else in them is: what they need was mapped and locked before. With "told" it waits for
// SIGUSR1, after READY. Prints how often its thread left its CPU meanwhile, as "SWITCHES N", and
// the truth in pages.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

static struct {
  char* next;
  size_t page_bytes;
  struct tally tallies[3];
} work = {.tallies = {{"sixty", 0}, {"thirty", 0}, {"ten", 0}}};

static inline __attribute__((always_inline)) void touch(struct tally* tally, size_t pages) {
  // As in spin(): so that the function keeps its frame pointer.
  __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
  volatile char* page = work.next;
  for (size_t i = 0; i < pages; ++i, page += work.page_bytes) *page = 1;
  work.next = (char*)page;
  tally->iterations += pages;
}

static WORK_NOINLINE void sixty(size_t pages) {
  touch(&work.tallies[0], pages / 10 * 6);
}
static WORK_NOINLINE void thirty(size_t pages) {
  touch(&work.tallies[1], pages / 10 * 3);
}
static WORK_NOINLINE void ten(size_t pages) {
  touch(&work.tallies[2], pages / 10);
}

static WORK_NOINLINE void level_1(void (*function)(size_t), size_t pages) {
  function(pages);
  WORK_NO_TAIL_CALL();
}
static WORK_NOINLINE void level_2(void (*function)(size_t), size_t pages) {
  level_1(function, pages);
  WORK_NO_TAIL_CALL();
}
static WORK_NOINLINE void level_3(void (*function)(size_t), size_t pages) {
  level_2(function, pages);
  WORK_NO_TAIL_CALL();
}

static void all(void* pages) {
  level_3(sixty, *(size_t*)pages);
  level_3(thirty, *(size_t*)pages);
  level_3(ten, *(size_t*)pages);
}

static long switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

// Not as huge pages, of which one fault brings many.
static char* fresh_memory(size_t bytes) {
  char* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE)) {
    perror("page_faults");
    exit(1);
  }
  return memory;
}

static void await_word(void) {
  sigset_t word;
  int signal_number;
  sigemptyset(&word);
  sigaddset(&word, SIGUSR1);
  sigwait(&word, &signal_number);
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 2;
  size_t pages = strtoul(argv[1], NULL, 10);
  work.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  sigset_t word;
  sigemptyset(&word);
  sigaddset(&word, SIGUSR1);
  sigprocmask(SIG_BLOCK, &word, NULL);
  start_work("0");
  if (mlockall(MCL_CURRENT)) {
    perror("mlockall");
    return 1;
  }
  if (argc == 3 && strcmp(argv[2], "told") == 0) await_word();
  work.next = fresh_memory(pages * work.page_bytes);
  const long before = switches();
  from_root(all, &pages);
  printf("SWITCHES %ld\n", switches() - before);
  report(work.tallies, 3);
  return 0;
}
