// SPDX-License-Identifier: Apache-2.0
// threads SECONDS [hop]: threads named busy-half, busy-third and busy-sixth take a half, a third
// and a sixth of the work. With `hop` each moves to another CPU after every slice.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

#define THREADS 3

struct worker {
  const char* name;
  unsigned sixths;
  unsigned index;
  struct tally tally;
};

static bool hop;
static pthread_barrier_t round_done;
static atomic_bool finished;

WORK_NOINLINE void thread_slice(void) {
  spin(WORK_SLICE);
}

WORK_NOINLINE void move_on(unsigned to) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(to % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
}

// In rounds, so that the shares hold whatever the scheduler gives to whom.
static void thread_loop(void* argument) {
  struct worker* const self = argument;
  for (unsigned round = self->index; !finished; ++round) {
    for (unsigned i = 0; i < 10 * self->sixths; ++i) {
      if (hop) move_on(round + i);
      thread_slice();
      self->tally.iterations += WORK_SLICE;
    }
    pthread_barrier_wait(&round_done);
    if (self->index == 0 && !work_left()) finished = true;
    pthread_barrier_wait(&round_done);
  }
}

static void* run(void* argument) {
  pthread_setname_np(pthread_self(), ((struct worker*)argument)->name);
  from_root(thread_loop, argument);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  hop = argc > 2 && strcmp(argv[2], "hop") == 0;
  static struct worker workers[THREADS] = {{"busy-half", 3, 0, {"busy-half", 0}},
                                           {"busy-third", 2, 1, {"busy-third", 0}},
                                           {"busy-sixth", 1, 2, {"busy-sixth", 0}}};
  pthread_t threads[THREADS];
  pthread_barrier_init(&round_done, NULL, THREADS);
  start_work(argv[1]);
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, run, &workers[i]);
  struct tally tallies[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    tallies[i] = workers[i].tally;
  }
  report(tallies, THREADS);
  return 0;
}
