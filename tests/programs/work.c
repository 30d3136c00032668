// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// A test that dies must not leave a busy program behind.
#define LONGEST_LIFE_SECONDS 120

// clang-format off
#if defined(__x86_64__)
__asm__(
    ".text\n.globl from_root\n.type from_root, @function\n"
    "from_root:\n"
    "  push %rbp\n"
    "  xor %ebp, %ebp\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size from_root, . - from_root\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl from_root\n.type from_root, %function\n"
    "from_root:\n"
    "  stp x29, x30, [sp, #-16]!\n"
    "  mov x29, xzr\n"
    "  mov x9, x0\n"
    "  mov x0, x1\n"
    "  blr x9\n"
    "  ldp x29, x30, [sp], #16\n"
    "  ret\n"
    ".size from_root, . - from_root\n");
#else
#error "x86_64 and arm64 only"
#endif
// clang-format on

// More than any stack here needs.
#define STACK_BYTES ((size_t)128 << 10)
// What is taken beyond the number of pages: less than a round of any program here.
#define SPARE_PAGES 4096

struct work_pages work_pages;
static uint64_t budget_ns;
static volatile sig_atomic_t told_to_stop;
static bool waits_for_word;

static void stop(int signal_number) {
  (void)signal_number;
  told_to_stop = 1;
}

static uint64_t process_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static WORK_NOINLINE void touch_stack(void) {
  volatile char stack[STACK_BYTES];
  for (size_t i = 0; i < sizeof stack; i += work_pages.bytes) stack[i] = 1;
}

// Not as huge pages, of which one fault brings many. Locking passes over what may not be read, and
// brings everything else, also what is mapped later: code, libraries that are opened, stacks of
// threads.
static void make_pages(size_t count) {
  work_pages.bytes = (size_t)sysconf(_SC_PAGESIZE);
  const size_t bytes = (count + SPARE_PAGES) * work_pages.bytes;
  char* const memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  touch_stack();
  if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE) ||
      mlockall(MCL_CURRENT | MCL_FUTURE) || munlock(memory, bytes) ||
      mprotect(memory, bytes, PROT_READ | PROT_WRITE)) {
    perror("fresh pages");
    exit(1);
  }
  work_pages.next = memory;
  work_pages.end = memory + count * work_pages.bytes;
}

bool work_by_pages(const char* amount) {
  char* unit;
  const unsigned long count = strtoul(amount, &unit, 10);
  if (*unit != 'p') return false;
  make_pages(count);
  return true;
}

// Where nothing is lost that comes between looking and waiting.
static void block(int signal_number, sigset_t* blocked) {
  sigemptyset(blocked);
  sigaddset(blocked, signal_number);
  sigprocmask(SIG_BLOCK, blocked, NULL);
}

void start_work(const char* amount) {
  signal(SIGTERM, stop);
  alarm(LONGEST_LIFE_SECONDS);
  if (!work_by_pages(amount)) budget_ns = (uint64_t)(strtod(amount, NULL) * 1e9);
  waits_for_word = strstr(amount, "-told") != NULL;
  sigset_t word;
  int number;
  if (waits_for_word) block(SIGUSR1, &word);
  puts("READY");
  fflush(stdout);
  if (waits_for_word) sigwait(&word, &number);
}

bool work_left(void) {
  if (told_to_stop) return false;
  if (work_pages.bytes != 0) return work_pages.next < work_pages.end;
  return budget_ns == 0 || process_ns() < budget_ns;
}

unsigned draw(unsigned limit) {
  static __thread uint64_t state = 88172645463325252ULL;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state % limit);
}

uint64_t used_cpu_ns(void) {
  struct rusage children;
  getrusage(RUSAGE_CHILDREN, &children);
  const struct timeval* const times[] = {&children.ru_utime, &children.ru_stime};
  uint64_t total = process_ns();
  for (size_t i = 0; i < 2; ++i)
    total += (uint64_t)times[i]->tv_sec * 1000000000ULL + (uint64_t)times[i]->tv_usec * 1000ULL;
  return total;
}

void report(const struct tally* tallies, size_t count) {
  printf("{\"pid\":%d,\"cpu_ns\":%" PRIu64 ",\"iterations\":{", (int)getpid(), used_cpu_ns());
  for (size_t i = 0; i < count; ++i)
    printf("%s\"%s\":%" PRIu64, i ? "," : "", tallies[i].function, tallies[i].iterations);
  puts("}}");
  fflush(stdout);
  sigset_t end;
  int number;
  if (!waits_for_word) return;
  block(SIGTERM, &end);
  if (!told_to_stop) sigwait(&end, &number);
}
