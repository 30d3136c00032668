// SPDX-License-Identifier: Apache-2.0
// mangled SECONDS: names as only C++ has them; each kind takes a fifth.
#include <string>
#include <vector>

#include "work.h"

namespace outer::inner {

template <typename T, int N>
struct Box {
  WORK_NOINLINE void Fill(const std::vector<T>& with) {
    spin(WORK_SLICE);
    last = with.size() + N;
  }
  WORK_NOINLINE Box& operator<<=(int by) {
    spin(WORK_SLICE);
    last <<= by;
    return *this;
  }
  WORK_NOINLINE explicit operator bool() const {
    spin(WORK_SLICE);
    return last != 0;
  }
  unsigned long last = 0;
};

}  // namespace outer::inner

namespace {

WORK_NOINLINE void InNobodysNamespace() {
  spin(WORK_SLICE);
}

// The same symbol name would be `spin` again if it were not mangled with its argument.
WORK_NOINLINE void Overloaded(const std::string*) {
  spin(WORK_SLICE);
}

void Loop(void* argument) {
  auto* tallies = static_cast<tally*>(argument);
  outer::inner::Box<std::string, 7> box;
  const std::vector<std::string> strings(1);
  while (work_left()) {
    const unsigned which = draw(5);
    switch (which) {
      case 0:
        box.Fill(strings);
        break;
      case 1:
        box <<= 1;
        break;
      case 2:
        (void)static_cast<bool>(box);
        break;
      case 3:
        InNobodysNamespace();
        break;
      default:
        Overloaded(strings.data());
        break;
    }
    tallies[which].iterations += WORK_SLICE;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  tally tallies[] = {{"outer::inner::Box<...>::Fill", 0},
                     {"outer::inner::Box<...>::operator<<=", 0},
                     {"outer::inner::Box<...>::operator bool", 0},
                     {"(anonymous namespace)::InNobodysNamespace", 0},
                     {"(anonymous namespace)::Overloaded", 0}};
  start_work(argv[1]);
  from_root(Loop, tallies);
  report(tallies, 5);
  return 0;
}
