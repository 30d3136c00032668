// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/procfs.h"
#include "pyrometer/sampling.h"
#include "sampler/denied_cgroups.h"
#include "sampler/faces.h"
#include "sampler/filter_generations.h"
#include "sampler/map_sizes.h"
#include "sampler/mapped_array.h"
#include "sampler/outcome_counts.h"
#include "sampler/perf_events.h"
#include "sampler/skeleton.h"
#include "sampler/tick_journals.h"
#include "sampler/window_drain.h"

namespace pyrometer {

// The ticks, and the two halves of the journals and window maps. A drain activates the other half
// and, in the same store, the prepared filter. It waits until no program uses the former ones, then
// reads the quiet half. The next drain repeats a step that failed.
//
// Threads as for WindowSource; counters: any thread.
class SampleWindows : public WindowSource {
 public:
  struct Options {
    const Clock& clock;
    SampledEvent event{};
    Hertz frequency{99};  // of a clock
    Procfs procfs{};
    MapSizes sizes{};
  };
  // `skeleton` is loaded; it and the clock must outlive this. Samples everything until given a
  // filter.
  static Result<std::unique_ptr<SampleWindows>> Open(sampler_bpf& skeleton, const Options& options);

  // As Prepare(), but takes effect at once. REQUIRES: not started yet.
  Result<void> SetFilter(const SampleFilter& filter);

  Result<void> Start() override;
  Result<void> FollowCpus() override { return events_.FollowCpus(); }
  void Stop() override {
    events_.Stop();
    stopped_ = Now();
  }
  bool NearlyFull() const override;
  std::chrono::nanoseconds TimeUntilNearlyFull() const override;
  Result<void> Prepare(const SamplingChange& change) override;
  Result<Window> Drain() override;
  bool HasLeftover() const override {
    return (quieting_ || has_window_) && window_frequency_ != events_.frequency();
  }
  Result<void> Deny(uint64_t cgroup) override { return denied_.Deny(cgroup); }
  void Allow(uint64_t cgroup) override { denied_.Allow(cgroup); }
  bool AnyWantedPid() const override { return filters_.AnyWantedPid(); }
  void ForgetWantedPid(Pid pid) override { filters_.ForgetPid(pid); }
  Result<void> WantCgroup(uint64_t cgroup) override { return filters_.WantCgroup(cgroup); }
  Accounting accounting() const override;

  // The CPU time that ticks have taken.
  std::chrono::nanoseconds tick_time() const;
  // Ticks in the windows handed out so far.
  uint64_t drained() const { return drained_; }
  size_t denied_cgroups() const { return denied_.size(); }
  const PerfEvents& events() const { return events_; }

 private:
  // A half that is no longer written, except by programs already running.
  struct Quieting {
    uint32_t half = 0;
    uint64_t due = 0;  // ticks that were due by the end of its window
    bool is_quiet = false;
    bool is_booked = false;
  };
  struct Moment {
    MonotonicTime monotonic;
    std::chrono::system_clock::time_point wall;
  };

  SampleWindows(sampler_bpf& skeleton, const Options& options, MappedArray<std::byte> journals);

  Moment Now() const;
  void Swap();
  Result<void> Collect();
  Result<void> Book(const Quieting& quieting);
  Window TakeWindow();
  uint32_t active() const;

  sampler_bpf& skeleton_;
  const Clock& clock_;
  const Procfs procfs_;
  const std::array<WindowMaps, 2> halves_;
  const std::array<uint32_t, PYRO_STACK_CLASSES + 1> capacity_;  // in the order of `used`
  FilterGenerations filters_;
  DeniedCgroups denied_;
  OutcomeCounts outcomes_;
  PerfEvents events_;
  MappedArray<std::byte> journal_memory_;
  TickJournals journals_;
  KernelMapReader reader_;
  WindowDrain drain_;

  std::optional<Hertz> next_frequency_;
  std::optional<Quieting> quieting_;  // left by a drain that failed
  bool has_window_ = false;           // read, and not yet handed out
  Hertz window_frequency_;
  Moment window_begin_;
  Moment window_end_;
  std::optional<Moment> stopped_;  // when ticks ended
  Accounting window_books_;
  std::array<Accounting, 2> booked_;       // by half: already in windows
  std::atomic<uint64_t> undelivered_ = 0;  // likewise
  std::atomic<uint64_t> drained_ = 0;
};

}  // namespace pyrometer
