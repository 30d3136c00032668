// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Adds windows up. Samples that agree in process, names, labels, event, frames and stack end are
// one sample, also over windows: so memory grows with what is distinct and not with time. They are
// compared by frame and named when they leave, see FrameNames.
//
// A profile's begin, end, duration (the sum of the windows' lengths), frequency and accounting are
// those of the windows added. Not thread-safe: owned by the thread that names the windows.
class ProfileBuilder {
 public:
  struct Options {
    Labels labels;  // on every sample; in any order, and of several with one name the last
  };

  explicit ProfileBuilder(Options options);
  ~ProfileBuilder();
  ProfileBuilder(ProfileBuilder&&) noexcept;
  ProfileBuilder& operator=(ProfileBuilder&&) noexcept;

  // Keeps what it needs of `named`. REQUIRES: windows in the order of time, with a frequency that
  // is not 0; a location for each frame of the window.
  void Add(const NamedWindow& named);

  // Everything added so far in one profile, in the order of first sight; the label sets of the
  // processes stay on the samples, without what the options have labels of the same name for.
  // REQUIRES: all samples are of one event kind.
  Profile Finish() &&;

  // The same as one profile for each label set and event kind of which there are samples. Where
  // both have a label of one name, the options' wins: what the user said is on every profile,
  // whatever a process calls itself. Each profile has the accounting of all windows, since what was
  // lost or filtered has no labels.
  std::vector<Profile> FinishByLabels() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
