// SPDX-License-Identifier: Apache-2.0
#include "agent/window_shipper.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/sample_labels.h"

namespace pyrometer {
namespace {

void CountSamples(const Profile& profile, WindowShipper::Counters& counters) {
  for (const ProfileSample& sample : profile.samples) {
    counters.samples += sample.count;
    counters.ends[static_cast<size_t>(sample.end)] += sample.count;
  }
}

}  // namespace

WindowShipper::WindowShipper(Labels labels, Ship ship, const Clock& clock,
                             WaitingSamples::Options late)
    : ship_(std::move(ship)),
      clock_(clock),
      waiting_(std::move(late)),
      labels_(std::move(labels)) {}

void WindowShipper::SetLabels(Labels labels, const SampleLabels& of_samples) {
  const absl::MutexLock lock(&mutex_);
  labels_ = std::move(labels);
  of_samples_ = of_samples;
}

void WindowShipper::Consume(const Delivery& delivery) {
  const Window& window = delivery.window->window;
  if (builder_ && window.frequency != frequency_) Finish();
  if (!builder_) {
    const absl::MutexLock lock(&mutex_);
    builder_.emplace(ProfileBuilder::Options{.labels = labels_});
  }
  frequency_ = window.frequency;
  missed_ += delivery.missed;
  builder_->Add(*delivery.window);
  {
    const absl::MutexLock lock(&mutex_);
    latency_.named.Add(Between(window.end, clock_.Now()));
    last_end_ = {.wall = window.wall_end, .monotonic = window.end};
    counters_.missed += delivery.missed.TotalLost();
  }
  if (delivery.ends_period) Finish();
}

void WindowShipper::EndPeriod() {
  if (builder_) Finish();
  const MonotonicTime begin = clock_.Now();
  if (std::vector<Profile> rest = waiting_.TakeAll(); !rest.empty()) Send(std::move(rest), begin);
}

std::vector<Profile> WindowShipper::TakePeriod() {
  std::vector<Profile> profiles;
  const Accounting missed = std::exchange(missed_, {});
  for (Profile& whole : std::move(*builder_).FinishByEvents()) {
    whole.accounting += missed;
    std::ranges::move(waiting_.Split(std::move(whole)), std::back_inserter(profiles));
  }
  builder_.reset();
  return profiles;
}

void WindowShipper::Finish() {
  const MonotonicTime begin = clock_.Now();
  std::vector<Profile> earlier = waiting_.TakeReady();
  std::vector<Profile> profiles = TakePeriod();
  std::ranges::move(earlier, std::back_inserter(profiles));
  {
    const absl::MutexLock lock(&mutex_);
    ++counters_.periods;
  }
  Send(std::move(profiles), begin);
}

void WindowShipper::Send(std::vector<Profile> profiles, MonotonicTime begin) {
  if (const SampleLabels of_samples = this->of_samples(); of_samples.Any()) {
    profiles = SplitBySampleLabels(std::move(profiles), of_samples, kMostSplit);
  }
  {
    const absl::MutexLock lock(&mutex_);
    latency_.built.Add(Between(begin, clock_.Now()));
    counters_.profiles += profiles.size();
    counters_.waiting = waiting_.counters();
    for (const Profile& profile : profiles) CountSamples(profile, counters_);
  }
  ship_(std::make_shared<const std::vector<Profile>>(std::move(profiles)));
}

SampleLabels WindowShipper::of_samples() const {
  const absl::MutexLock lock(&mutex_);
  return of_samples_;
}

WindowShipper::Counters WindowShipper::counters() const {
  const absl::MutexLock lock(&mutex_);
  return counters_;
}

WindowShipper::Latency WindowShipper::latency() const {
  const absl::MutexLock lock(&mutex_);
  return latency_;
}

std::optional<WindowShipper::End> WindowShipper::last_end() const {
  const absl::MutexLock lock(&mutex_);
  return last_end_;
}

}  // namespace pyrometer
