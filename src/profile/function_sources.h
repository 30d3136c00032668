// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/shown_stacks.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// A source line of a function, and the samples taken there.
struct SourceLine {
  std::string_view file;  // not cleaned, see base/printable.h
  int64_t line = 0;       // 0: unknown
  uint64_t self = 0;      // in this line itself
  uint64_t total = 0;     // and in what it calls: once for each stack, even if that recurs
};

// Where in their sources the functions of a profile spend their time, as far as that is known. A
// view of the profile, which must outlive it.
class FunctionSources {
 public:
  // What is kept of a function's lines: those with the most samples in all, and one more if none
  // of these is the hottest.
  static constexpr size_t kMostLines = 3;

  FunctionSources(const Profile& profile, const ShownStacks& shown);

  // Of a frame of `shown`: most samples in all first; nothing if none is known.
  absl::Span<const SourceLine> LinesOf(uint32_t frame) const {
    return absl::MakeConstSpan(lines_).subspan(first_[frame], first_[frame + 1] - first_[frame]);
  }

  // The line with the most samples of the function itself; if it has none, with the most in all.
  // Null if no line is known.
  const SourceLine* HottestOf(uint32_t frame) const;

 private:
  std::vector<SourceLine> lines_;  // by frame
  std::vector<size_t> first_;      // for each frame where in lines_ it begins; one more for the end
};

}  // namespace pyrometer
