// SPDX-License-Identifier: Apache-2.0
// Signal frames: on the stack of the interrupted and on one of their own, nested, with and without
// SA_SIGINFO, left by a jump, out of a fault, around a system call.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "unwound.h"
#include "work.h"

enum { kStackSize = 64 * 1024, kPage = 4096 };

static sigjmp_buf after_fault;

NOINLINE static void deeper(int depth, int signal) {
  ALIGNED(64) uint64_t block[8] = {work((uint64_t)depth)};
  ESCAPE(block);
  if (depth > 0) {
    deeper(depth - 1, signal);
  } else if (signal != 0) {
    raise(signal);
  }
  sink += block[0];
}

// Raises the next one: SIGUSR1 -> SIGUSR2 -> SIGTERM.
static void on_signal(int signal) {
  deeper(3, signal == SIGUSR1 ? SIGUSR2 : signal == SIGUSR2 ? SIGTERM : 0);
}

static void on_signal_with_info(int signal, siginfo_t* info, void* context) {
  ESCAPE(context);
  sink += (uint64_t)info->si_code;
  on_signal(signal);
}

static void on_fault(int signal) {
  work((uint64_t)signal);
  siglongjmp(after_fault, 1);
}

static void install(int signal, int flags, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  if (flags & SA_SIGINFO) {
    action.sa_sigaction = on_signal_with_info;
  } else {
    action.sa_handler = handler;
  }
  action.sa_flags = flags;
  if (sigaction(signal, &action, NULL) != 0) exit(1);
}

static void install_all(int flags) {
  install(SIGUSR1, flags, on_signal);
  install(SIGUSR2, flags | SA_SIGINFO, on_signal);
  install(SIGTERM, flags | SA_NODEFER, on_signal);
  install(SIGSEGV, flags, on_fault);
  install(SIGALRM, flags, on_signal);
}

// Between guard pages, so that the mapping is the stack's own.
static void use_signal_stack(void) {
  char* const area =
      mmap(NULL, kStackSize + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) exit(1);
  if (mprotect(area + kPage, kStackSize, PROT_READ | PROT_WRITE) != 0) exit(1);
  const stack_t stack = {.ss_sp = area + kPage, .ss_size = kStackSize};
  if (sigaltstack(&stack, NULL) != 0) exit(1);
}

// At the very first instruction of a function, where the frame is not there yet.
NOINLINE static uint64_t faults_at_once(const volatile uint64_t* nowhere) {
  return *nowhere;
}

NOINLINE static void faults(int depth) {
  if (depth > 0) {
    faults(depth - 1);
    work((uint64_t)depth);
    return;
  }
  static const volatile uint64_t* volatile nowhere;
  if (sigsetjmp(after_fault, 1) == 0) sink += faults_at_once(nowhere);
}

NOINLINE static void interrupted_system_call(void) {
  const struct itimerval soon = {.it_value = {.tv_usec = 2000}};
  sigset_t alarm, before;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigprocmask(SIG_BLOCK, &alarm, &before);
  setitimer(ITIMER_REAL, &soon, NULL);
  sigsuspend(&before);
  sigprocmask(SIG_SETMASK, &before, NULL);
}

static void once(void) {
  deeper(4, SIGUSR1);
  deeper(0, SIGUSR2);
  kill(getpid(), SIGTERM);
  interrupted_system_call();
}

int main(void) {
  install_all(0);
  for (int i = 0; i < 6; ++i) once();
  use_signal_stack();
  install_all(SA_ONSTACK);
  for (int i = 0; i < 6; ++i) once();
  faults(3);
  return 0;
}
