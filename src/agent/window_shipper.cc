// SPDX-License-Identifier: Apache-2.0
#include "agent/window_shipper.h"

#include <utility>

#include "base/clock.h"

namespace pyrometer {
namespace {

void CountSamples(const Profile& profile, WindowShipper::Counters& counters) {
  for (const ProfileSample& sample : profile.samples) {
    counters.samples += sample.count;
    counters.ends[static_cast<size_t>(sample.end)] += sample.count;
  }
}

}  // namespace

WindowShipper::WindowShipper(Labels labels, Ship ship)
    : ship_(std::move(ship)), labels_(std::move(labels)) {}

void WindowShipper::SetLabels(Labels labels) {
  const absl::MutexLock lock(&mutex_);
  labels_ = std::move(labels);
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
    latency_.named.Add(Between(window.end, MonotonicNow()));
    last_end_ = {.wall = window.wall_end, .monotonic = window.end};
    counters_.missed += delivery.missed.TotalLost();
  }
  if (delivery.ends_period) Finish();
}

void WindowShipper::EndPeriod() {
  if (builder_) Finish();
}

void WindowShipper::Finish() {
  const MonotonicTime begin = MonotonicNow();
  auto profiles = std::make_shared<std::vector<Profile>>(std::move(*builder_).FinishByLabels());
  builder_.reset();
  const Accounting missed = std::exchange(missed_, {});
  for (Profile& profile : *profiles) profile.accounting += missed;
  {
    const absl::MutexLock lock(&mutex_);
    latency_.built.Add(Between(begin, MonotonicNow()));
    ++counters_.periods;
    counters_.profiles += profiles->size();
    for (const Profile& profile : *profiles) CountSamples(profile, counters_);
  }
  ship_(profiles);
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
