// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>

namespace steps {

template <typename F>
inline __attribute__((always_inline)) uint64_t Once(F f, uint64_t x) {
  return f(x) ^ 1;
}

template <typename F>
inline uint64_t Twice(F f, uint64_t x) {
  return Once([&](uint64_t y) { return Once(f, y) + 1; }, x);
}

template <int kDepth>
struct Nest {
  template <typename F>
  static inline uint64_t Apply(F f, uint64_t x) {
    return Nest<kDepth - 1>::Apply([&](uint64_t y) { return f(y) + kDepth; }, f(x));
  }
};

template <>
struct Nest<0> {
  template <typename F>
  static inline uint64_t Apply(F f, uint64_t x) {
    return Twice(f, x);
  }
};

inline uint64_t Clamp(uint64_t x, uint64_t low, uint64_t high) {
  const auto pick = [&](bool first) { return first ? low : high; };
  return x < low ? pick(true) : (x > high ? pick(false) : x);
}

// Leaves cold code behind.
inline uint64_t Guarded(uint64_t x) {
  if (x == ~uint64_t{0}) throw std::overflow_error("too much");
  return x;
}

}  // namespace steps
