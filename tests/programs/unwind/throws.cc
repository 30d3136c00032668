// SPDX-License-Identifier: Apache-2.0
// C++ exceptions: through frames with and without clean-up, caught by type, thrown again, out of
// constructors, through callbacks of libc.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "unwound.h"
#include "work.h"

namespace {

struct CleanUp {
  explicit CleanUp(uint64_t x) : value(x) {}
  NOINLINE ~CleanUp() { work(value); }
  uint64_t value;
};

struct Thrown {
  uint64_t value;
};

constexpr uint64_t kNothing = 1000;  // to throw: the compiler is to believe that functions return

NOINLINE void Throw(uint64_t kind) {
  if (kind >= kNothing) return;
  if (kind % 3 == 0) throw Thrown{kind};
  if (kind % 3 == 1) throw std::runtime_error("number " + std::to_string(kind));
  throw kind;
}

NOINLINE void Through(uint64_t depth, uint64_t kind) {
  alignas(64) uint64_t block[8] = {depth};
  ESCAPE(block);
  if (depth == 0) return Throw(kind);
  const CleanUp clean_up(depth);
  Through(depth - 1, kind);
  work(block[0]);
}

NOINLINE void ThroughPlain(uint64_t depth, uint64_t kind) {
  if (depth == 0) return Through(3, kind);
  ThroughPlain(depth - 1, kind);
  work(depth);
}

NOINLINE void Rethrow(uint64_t kind) {
  try {
    ThroughPlain(4, kind);
  } catch (const Thrown& thrown) {
    work(thrown.value);
    throw;
  } catch (const std::exception&) {
    std::throw_with_nested(Thrown{kind});
  }
}

NOINLINE void Catch(uint64_t kind) {
  try {
    Rethrow(kind);
  } catch (const Thrown& thrown) {
    work(thrown.value);
  } catch (...) {
    work(kind);
  }
}

struct Member {
  explicit Member(uint64_t kind) : first(kind), second(Failing(kind)) {}
  NOINLINE static uint64_t Failing(uint64_t kind) {
    Throw(kind);
    return kind;
  }
  CleanUp first;
  CleanUp second;
};

NOINLINE void OutOfConstructor(uint64_t kind) {
  try {
    const Member member(kind);
    work(member.first.value);
  } catch (...) {
    work(kind);
  }
}

int Compare(const void*, const void*) {
  Throw(0);
  return 0;
}

NOINLINE void ThroughLibc() {
  int numbers[] = {3, 1, 2};
  try {
    std::qsort(static_cast<void*>(numbers), 3, sizeof numbers[0], Compare);
  } catch (const Thrown& thrown) {
    work(thrown.value);
  }
}

}  // namespace

int main() {
  for (uint64_t kind = 0; kind < 3; ++kind) {
    Catch(kind);
    OutOfConstructor(kind);
  }
  ThroughLibc();
  return 0;
}
