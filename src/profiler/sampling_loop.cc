// SPDX-License-Identifier: Apache-2.0
#include "profiler/sampling_loop.h"

#include <algorithm>
#include <stop_token>
#include <utility>

#include "base/stoppable_sleep.h"

namespace pyrometer {
namespace {

uint64_t SamplesIn(const Window& window) {
  uint64_t samples = 0;
  for (const Sample& sample : window.samples) samples += sample.count;
  return samples;
}

}  // namespace

void TakenWindow::TakeOver(const TakenWindow& dropped) {
  ended.insert(ended.end(), dropped.ended.begin(), dropped.ended.end());
  missed += dropped.missed;
  missed += Missed(dropped.resolved.window);
  // They tell what changed from window to window.
  std::vector<KernelSymbolEvent>& events = resolved.kernel_events;
  const std::vector<KernelSymbolEvent>& earlier = dropped.resolved.kernel_events;
  events.insert(events.begin(), earlier.begin(), earlier.end());
}

Result<void> SamplingLoop::Start() {
  window_began_ = parts_.clock.Now();
  look_for_cpus_ = After(window_began_, kLookForCpus);
  return parts_.source.Start();
}

std::chrono::nanoseconds SamplingLoop::Step() {
  const MonotonicTime now = parts_.clock.Now();
  if (now >= look_for_cpus_) FollowCpus();
  if (now >= not_before_) {
    if (now >= parts_.consumers.EndOfWindow(window_began_)) {
      TakeWindow(Why::kPeriodEnds);
    } else if (parts_.source.NearlyFull()) {
      TakeWindow(Why::kMapsFillUp);
    }
  }
  return TimeToNextStep(parts_.clock.Now());
}

std::chrono::nanoseconds SamplingLoop::TimeToNextStep(MonotonicTime now) const {
  const std::chrono::nanoseconds until_full = std::max(parts_.source.TimeUntilNearlyFull(), kLook);
  const std::chrono::nanoseconds until_end =
      Between(now, std::max(parts_.consumers.EndOfWindow(window_began_), not_before_));
  const std::chrono::nanoseconds until_cpus = Between(now, look_for_cpus_);
  return std::max(std::min({until_full, until_end, until_cpus}), std::chrono::nanoseconds(0));
}

void SamplingLoop::FollowCpus() {
  look_for_cpus_ = After(parts_.clock.Now(), kLookForCpus);
  const Result<void> followed = parts_.source.FollowCpus();
  if (followed) return;
  Count(&Counters::failed_cpu_looks);
  parts_.log.Failed("following CPUs that come and go", followed.error());
}

Result<void> SamplingLoop::Change(const SamplingChange& change) {
  RETURN_IF_ERROR(parts_.source.Prepare(change));
  Count(&Counters::changes);
  TakeWindow(Why::kAsked);  // if that fails, the change waits for the next attempt
  return {};
}

uint64_t SamplingLoop::BeginWindow() {
  TakeWindow(Why::kAsked);
  return number_;
}

bool SamplingLoop::TakeWindow(Why why) {
  const Moment now{.monotonic = parts_.clock.Now(), .wall = parts_.clock.WallNow()};
  Result<Window> window = parts_.source.Drain();
  if (!window) {
    Count(&Counters::failed_drains);
    parts_.log.Failed("taking a window", window.error());
    not_before_ = After(now.monotonic, kLook);
    drain_failed_ = true;
    return false;
  }
  drain_failed_ = false;
  parts_.cold.MoveInto(*window);
  // A sample that user space unwinds counts in the window with which it comes.
  window->accounting.exported = SamplesIn(*window);
  handed_out_ += window->accounting.exported;
  if (why == Why::kLast) {
    // Nothing must be missing silently, whatever went wrong.
    const uint64_t exported = parts_.source.accounting().exported;
    window->accounting.lost[Accounting::kInternal] += exported - std::min(exported, handed_out_);
  }
  window_began_ = now.monotonic;
  Count(&Counters::windows);
  if (why == Why::kMapsFillUp) Count(&Counters::early_windows);
  if (parts_.consumers.empty()) Count(&Counters::unwanted_windows);
  std::vector<ConsumerId> ended =
      why == Why::kLast ? parts_.consumers.EndAll() : parts_.consumers.EndPeriods(now);
  parts_.out.Push({.number = number_++,
                   .resolved = parts_.processes.Resolve(*std::move(window)),
                   .ended = std::move(ended),
                   .missed = {}});
  return true;
}

void SamplingLoop::Finish(std::chrono::steady_clock::time_point until) {
  parts_.source.Stop();
  parts_.cold.Finish(until);
  if (drain_failed_ || !TakeWindow(Why::kLast)) {
    // The sampler hands out what a failed attempt left first, and by itself if that was at another
    // frequency.
    while (!TakeWindow(Why::kAsked) && std::chrono::steady_clock::now() < until) {
      SleepFor(std::chrono::milliseconds(10), {});
    }
    TakeWindow(Why::kLast);
  }
  parts_.out.Close();
}

SamplingLoop::Counters SamplingLoop::counters() const {
  const absl::MutexLock lock(&mutex_);
  return counters_;
}

void SamplingLoop::Count(uint64_t Counters::*counter) {
  const absl::MutexLock lock(&mutex_);
  ++(counters_.*counter);
}

}  // namespace pyrometer
