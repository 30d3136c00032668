// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "process/process_knowledge.h"
#include "process/resolved_window.h"
#include "profiler/cold_unwinder.h"
#include "profiler/consumers.h"
#include "profiler/window_line.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"
#include "pyrometer/sampling.h"
#include "sampler/faces.h"

namespace pyrometer {

// A window on its way to be named.
struct TakenWindow {
  uint64_t number = 0;
  ResolvedWindow resolved;
  std::vector<ConsumerId> ended;  // whose periods end with it
  Accounting missed;              // of windows that went before and had to be dropped

  void TakeOver(const TakenWindow& dropped);
};

// Takes windows where they end, and looks after the sampler meanwhile. Nothing that fails ends it:
// it is counted, told, and tried again. One thread runs it; any may ask for the counters.
class SamplingLoop {
 public:
  // How long after a failure, or at least until the maps are looked at again.
  static constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(250);
  // How often CPUs that came or went are looked for, which reads a file.
  static constexpr std::chrono::nanoseconds kLookForCpus = std::chrono::seconds(1);

  // All must outlive this.
  struct Parts {
    WindowSource& source;
    ProcessKnowledge& processes;
    ColdUnwinder& cold;
    Consumers& consumers;
    WindowLine<TakenWindow>& out;
    const Clock& clock;
    Log& log;
  };
  struct Counters {
    uint64_t windows = 0;
    uint64_t early_windows = 0;     // of these: ended because a map of the kernel's filled up
    uint64_t unwanted_windows = 0;  // of these: no consumer was attached
    uint64_t failed_drains = 0;     // tried again: what was in them came later
    uint64_t failed_cpu_looks = 0;  // for CPUs that came or went; tried again
    uint64_t changes = 0;           // of frequency or filter
  };

  explicit SamplingLoop(const Parts& parts) : parts_(parts) {}

  // Ticks begin. Errors: of the kernel, which refuses them.
  Result<void> Start();

  // Does what is due. Returns how long until something may be again.
  std::chrono::nanoseconds Step();

  // In force from the window on that begins now. Errors: see WindowSource::Prepare.
  Result<void> Change(const SamplingChange& change);

  // Ends the window under way and returns the number of the one that begins.
  uint64_t BeginWindow();

  // Ticks end, and with the last window all periods. By `until` at the latest, give or take what
  // the kernel takes.
  void Finish(std::chrono::steady_clock::time_point until);

  Counters counters() const;

 private:
  enum class Why { kPeriodEnds, kMapsFillUp, kAsked, kLast };

  bool TakeWindow(Why why);
  void FollowCpus();
  std::chrono::nanoseconds TimeToNextStep(MonotonicTime now) const;
  void Count(uint64_t Counters::*counter);

  const Parts parts_;
  uint64_t number_ = 0;      // of the window under way
  uint64_t handed_out_ = 0;  // samples, in windows so far
  MonotonicTime window_began_;
  MonotonicTime look_for_cpus_;
  MonotonicTime not_before_;   // no window is taken, because taking one has just failed
  bool drain_failed_ = false;  // the last time
  mutable absl::Mutex mutex_;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
