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

// Samples that came by themselves may be from before the window, and from another frequency. (The
// clocks stand still where a window of another frequency begins.)
void ScaleLateSamples(Window& window, Hertz before) {
  if (before.value == 0 || before == window.frequency) return;
  for (Sample& sample : window.samples) {
    if (sample.first_seen < window.begin) sample.frequency = before;
  }
}

}  // namespace

void TakenWindow::TakeOver(const TakenWindow& dropped) {
  ended.insert(ended.end(), dropped.ended.begin(), dropped.ended.end());
  missed.insert(missed.end(), dropped.missed.begin(), dropped.missed.end());
  missed.push_back({.number = dropped.number, .accounting = Missed(dropped.window)});
}

Result<void> SamplingLoop::Start() {
  window_began_ = parts_.clock.Now();
  look_for_cpus_ = After(window_began_, kLookForCpus);
  parts_.consumers.Restart({window_began_, parts_.clock.WallNow()});
  return parts_.source.Start();
}

std::chrono::nanoseconds SamplingLoop::Step() {
  const MonotonicTime now = parts_.clock.Now();
  // A little early rather than by a wakeup of its own.
  if (Between(now, look_for_cpus_) <= kLook) FollowCpus();
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
  BeginWindow();  // if that fails, the change waits for the next attempt
  return {};
}

uint64_t SamplingLoop::BeginWindow() {
  if (parts_.source.HasLeftover() && !TakeWindow(Why::kAsked)) return number_ + 2;
  // If that fails, the window under way holds what was before.
  return TakeWindow(Why::kAsked) ? number_ : number_ + 1;
}

bool SamplingLoop::TakeWindow(Why why) {
  const Moment now{.monotonic = parts_.clock.Now(), .wall = parts_.clock.WallNow()};
  Result<Window> window = parts_.source.Drain();
  if (!window) {
    Count(&Counters::failed_drains);
    parts_.log.Failed("taking a window", window.error());
    not_before_ = After(now.monotonic, kLook);
    return false;
  }
  parts_.cold.MoveInto(*window);
  ScaleLateSamples(*window, frequency_);
  frequency_ = window->frequency;
  event_ = window->event;
  // A sample that user space unwinds counts in the window with which it comes.
  window->accounting.exported = SamplesIn(*window);
  if (why == Why::kLast) AddWhatIsMissing(*window);
  window_began_ = now.monotonic;
  if (why == Why::kMapsFillUp) Count(&Counters::early_windows);
  HandOut(*std::move(window),
          why == Why::kLast ? parts_.consumers.EndAll() : parts_.consumers.EndPeriods(now),
          why == Why::kLast);
  return true;
}

// Nothing must be missing silently, whatever went wrong: what the books have beyond the windows so
// far is said to be lost.
void SamplingLoop::AddWhatIsMissing(Window& last) const {
  Accounting booked = handed_out_;
  booked += last.accounting;
  const Accounting all = parts_.source.accounting();
  const uint64_t missing = all.Ticks() - std::min(all.Ticks(), booked.Ticks());
  last.accounting.lost[Accounting::kInternal] += missing;
}

void SamplingLoop::HandOut(Window window, std::vector<ConsumerId> ended, bool is_last) {
  handed_out_ += window.accounting;
  Count(&Counters::windows);
  if (parts_.consumers.empty()) Count(&Counters::unwanted_windows);
  parts_.out.Push({.number = number_++,
                   .window = std::move(window),
                   .ended = std::move(ended),
                   .is_last = is_last});
}

void SamplingLoop::Finish(MonotonicTime until) {
  parts_.source.Stop();
  const MonotonicTime now = parts_.clock.Now();
  parts_.cold.Finish(now < until ? After(now, Between(now, until) / 2) : until);
  bool taken = TakeLastWindow();
  while (!taken && parts_.clock.Now() < until) {
    SleepFor(std::chrono::milliseconds(10), {});
    taken = TakeLastWindow();
  }
  if (!taken) GiveUpLastWindow();
  parts_.out.Close();
}

// After what a failed attempt has left, which comes by itself.
bool SamplingLoop::TakeLastWindow() {
  if (parts_.source.HasLeftover() && !TakeWindow(Why::kAsked)) return false;
  return TakeWindow(Why::kLast);
}

// The kernel does not give its maps: what it counted is lost, what user space unwound is not.
void SamplingLoop::GiveUpLastWindow() {
  Window window;
  window.begin = window_began_;
  window.end = parts_.clock.Now();
  window.wall_begin = window.wall_end = parts_.clock.WallNow();
  window.frequency = frequency_;
  window.event = event_;
  parts_.cold.MoveInto(window);
  window.accounting.exported = SamplesIn(window);
  AddWhatIsMissing(window);
  HandOut(std::move(window), parts_.consumers.EndAll(), true);
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
