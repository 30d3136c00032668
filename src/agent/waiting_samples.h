// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "profile/label_split.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Makes one profile of each label set, and keeps samples whose labels are not known yet for a few
// periods. Not thread-safe.
class WaitingSamples {
 public:
  struct Options {
    Relabel relabel{};  // must not wait; empty: all labels are known
    // The same for what has waited long enough, always with an answer; empty: it stays as it is.
    Relabel give_up{};
    uint32_t most_periods = 3;  // that samples wait
  };
  struct Counters {
    uint64_t waiting = 0;  // ticks that wait now
    uint64_t late = 0;     // ticks that had to wait and do so no more
    uint64_t in_vain = 0;  // of these: their labels did not become known in time
    uint64_t dropped = 0;  // ticks that went for what their labels were
  };

  explicit WaitingSamples(Options options) : options_(std::move(options)) {}

  // What of `whole`, one period's samples with label sets, need not wait.
  std::vector<Profile> Split(Profile whole);

  // To be called once in a period: the samples of earlier ones whose labels are known by now, and
  // those that have waited long enough.
  std::vector<Profile> TakeReady();

  // All that still waits.
  std::vector<Profile> TakeAll();

  const Counters& counters() const { return counters_; }

 private:
  struct Waiting {
    Profile profile;
    uint32_t periods = 0;
  };
  void Keep(Waiting waiting);
  LabelSplit Counted(LabelSplit split);
  void GiveUp(Profile profile, std::vector<Profile>& ready);

  const Options options_;
  std::vector<Waiting> waiting_;  // oldest first
  Counters counters_;
};

}  // namespace pyrometer
