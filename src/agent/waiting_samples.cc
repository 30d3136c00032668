// SPDX-License-Identifier: Apache-2.0
#include "agent/waiting_samples.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyrometer {
namespace {

uint64_t TicksOf(const Profile& profile) {
  uint64_t ticks = 0;
  for (const ProfileSample& sample : profile.samples) ticks += sample.count;
  return ticks;
}

}  // namespace

void WaitingSamples::Keep(Waiting waiting) {
  counters_.waiting += TicksOf(waiting.profile);
  waiting_.push_back(std::move(waiting));
}

LabelSplit WaitingSamples::Counted(LabelSplit split) {
  counters_.dropped += split.dropped;
  return split;
}

void WaitingSamples::GiveUp(Profile profile, std::vector<Profile>& ready) {
  counters_.in_vain += TicksOf(profile);
  std::ranges::move(Counted(SplitByLabels(std::move(profile), options_.give_up)).ready,
                    std::back_inserter(ready));
}

std::vector<Profile> WaitingSamples::Split(Profile whole) {
  LabelSplit split = Counted(SplitByLabels(std::move(whole), options_.relabel));
  if (split.waiting) Keep({.profile = *std::move(split.waiting)});
  return std::move(split.ready);
}

std::vector<Profile> WaitingSamples::TakeReady() {
  std::vector<Profile> ready;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    const uint64_t ticks = TicksOf(waiting.profile);
    counters_.waiting -= ticks;
    counters_.late += ticks;
    LabelSplit split = Counted(SplitByLabels(std::move(waiting.profile), options_.relabel));
    std::ranges::move(split.ready, std::back_inserter(ready));
    if (!split.waiting) continue;
    if (waiting.periods + 1 >= options_.most_periods) {
      GiveUp(*std::move(split.waiting), ready);
      continue;
    }
    counters_.late -= TicksOf(*split.waiting);
    Keep({.profile = *std::move(split.waiting), .periods = waiting.periods + 1});
  }
  return ready;
}

std::vector<Profile> WaitingSamples::TakeAll() {
  std::vector<Profile> all;
  for (Waiting& waiting : std::exchange(waiting_, {})) GiveUp(std::move(waiting.profile), all);
  counters_.late += std::exchange(counters_.waiting, 0);
  return all;
}

}  // namespace pyrometer
