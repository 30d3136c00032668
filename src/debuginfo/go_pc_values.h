// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pyrometer {

// The instructions of a function that share a value: a file's number, a line, an inlined call.
struct GoRun {
  uint32_t begin = 0;  // from the function's beginning
  uint32_t end = 0;    // greater than `begin`
  int32_t value = 0;   // below zero: none
  bool operator==(const GoRun&) const = default;
};

// Reads tables of values by address: pairs of varints, the zigzag difference to the last value and
// how many instruction quanta it holds for, up to a zero byte in the place of a difference. Format:
// golang.org/s/go12symtab, and runtime.step.
class GoPcValues {
 public:
  // A function has as many runs as it has instructions at most; the longest one of Kubernetes has
  // 40,000.
  static constexpr size_t kMaxRuns = size_t{1} << 20;
  // Of all tables of a program together, so that a few bytes that many functions share cannot cost
  // hours. A program of 100 MB takes some 5 million.
  static constexpr uint64_t kMaxSteps = 100'000'000;

  explicit GoPcValues(uint32_t quantum, uint64_t steps = kMaxSteps)
      : quantum_(quantum), steps_left_(steps) {}

  // Replaces `runs` by those of `table` in a function of at most `size` bytes, ascending, without
  // gaps from 0. False, and no runs, if the table is malformed or a limit is reached.
  bool Read(std::span<const std::byte> table, uint64_t size, std::vector<GoRun>& runs);

 private:
  uint32_t quantum_;
  uint64_t steps_left_;
};

// The value at `offset` of the function; -1 if there is none.
int32_t ValueAt(std::span<const GoRun> runs, uint64_t offset);

}  // namespace pyrometer
