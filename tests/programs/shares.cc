// SPDX-License-Identifier: Apache-2.0
// shares DEPTH SECONDS: three functions that take 60, 30 and 10 percent, below DEPTH (5, 60 or
// 300) functions Level<DEPTH>, Level<DEPTH-1>, ..., Level<1>, each called once by the one before.
#include <cstdio>
#include <cstdlib>

#include "work.h"

namespace shares {

using Work = void (*)();

WORK_NOINLINE void Sixty() {
  spin(WORK_SLICE);
}
WORK_NOINLINE void Thirty() {
  spin(WORK_SLICE);
}
WORK_NOINLINE void Ten() {
  spin(WORK_SLICE);
}

template <int N>
WORK_NOINLINE void Level(Work work) {
  if constexpr (N == 1) {
    work();
  } else {
    Level<N - 1>(work);
  }
  WORK_NO_TAIL_CALL();
}

struct Run {
  void (*enter)(Work);
  tally tallies[3] = {{"shares::Sixty", 0}, {"shares::Thirty", 0}, {"shares::Ten", 0}};
};

void Loop(void* argument) {
  static constexpr Work kWork[] = {Sixty, Thirty, Ten};
  Run& run = *static_cast<Run*>(argument);
  while (work_left()) {
    const unsigned tenth = draw(10);
    const int which = tenth < 6 ? 0 : tenth < 9 ? 1 : 2;
    run.enter(kWork[which]);
    run.tallies[which].iterations += WORK_SLICE;
  }
}

}  // namespace shares

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  shares::Run run;
  switch (atoi(argv[1])) {
    case 5:
      run.enter = shares::Level<5>;
      break;
    case 60:
      run.enter = shares::Level<60>;
      break;
    case 300:
      run.enter = shares::Level<300>;
      break;
    default:
      fprintf(stderr, "depth: 5, 60 or 300\n");
      return 2;
  }
  start_work(argv[2]);
  from_root(shares::Loop, &run);
  report(run.tallies, 3);
  return 0;
}
