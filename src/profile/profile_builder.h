// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Adds windows up. Samples with equal process, names, labels, event, frames and stack end become
// one, also across windows: memory grows with the number of distinct samples, not with time.
// Samples are compared by frame and get their names only at the end, see FrameNames.
//
// A profile begins with the first window added, ends with the last one and has its frequency; the
// duration is the sum of the windows' lengths, the accounting the sum of theirs. Not thread-safe:
// owned by the thread that names the windows.
class ProfileBuilder {
 public:
  struct Options {
    Labels labels;  // on every sample; in any order; of those with the same name the last
  };

  explicit ProfileBuilder(Options options);
  ~ProfileBuilder();
  ProfileBuilder(ProfileBuilder&&) noexcept;
  ProfileBuilder& operator=(ProfileBuilder&&) noexcept;

  // Keeps what it needs of `named`. REQUIRES: windows come in order of time, each with a location
  // for each of its frames and, if its samples are ticks of a clock, a frequency that is not 0.
  void Add(const NamedWindow& named);

  // Returns everything added so far as one profile, in order of first appearance. The samples keep
  // the label sets of their processes, without labels that the options have, too.
  // REQUIRES: all samples are of one event kind.
  Profile Finish() &&;

  // The same as one profile for each event kind that has samples; see SplitByLabels() for more.
  // Each has the accounting of all windows, since lost and filtered samples are of no event.
  std::vector<Profile> FinishByEvents() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
