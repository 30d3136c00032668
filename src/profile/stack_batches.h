// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "pyrometer/profile.h"

namespace pyrometer {

// A stack and how often it was seen, whichever thread ran it.
struct StackCount {
  std::span<const uint32_t> stack;  // of a ProfileSample: indices into Profile::locations
  StackEnd end = StackEnd::kNoUserStack;
  uint64_t count = 0;
  uint64_t value = 0;
};

// What one request may hold. The defaults limit nothing.
struct BatchLimits {
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  size_t stacks = kNone;
  size_t bytes = kNone;  // encoded as pprof or OTLP, not compressed; REQUIRES: at least 4096
  size_t depth = kNone;  // frames; what is cut loses frames at its root and ends as kTruncated
  size_t name = kNone;   // bytes of any one string, see PprofOptions
};

struct StackBatches {
  // In order of first appearance; none is empty. Their counts add up to the profile's.
  std::vector<std::vector<StackCount>> batches;
  uint64_t cut = 0;  // the sum of the counts of stacks that were cut to fit
};

// The samples of `profile` in batches that each fit one request; samples that differ only in
// process, thread or labels are one. A batch is closed when the next stack does not fit; a stack
// that would not fit even alone is cut. What batches will take is reckoned while they are filled,
// a little too high, and never by encoding them: time grows with the profile's size.
// The result refers to `profile`.
StackBatches BatchStacks(const Profile& profile, const BatchLimits& limits);

}  // namespace pyrometer
