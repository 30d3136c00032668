// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "profiler/cold_unwinder.h"
#include "profiler/consumers.h"
#include "profiler/window_line.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"
#include "pyrometer/sampling.h"
#include "sampler/faces.h"

namespace pyrometer {

// A window on its way to be resolved and named.
struct TakenWindow {
  uint64_t number = 0;
  Window window;
  std::vector<ConsumerId> ended;       // whose periods end with it
  std::vector<MissedWindow> missed{};  // earlier windows that were dropped
  bool is_last = false;                // none follows it

  void TakeOver(const TakenWindow& dropped);
};

// Takes a window whenever one ends, and keeps the sampler up to date with online CPUs. No failure
// ends it: failures are counted, logged and tried again. One thread calls everything but
// counters(), which any thread may call.
class SamplingLoop {
 public:
  // How long to wait after a failed drain, and the shortest interval between looks at the maps.
  static constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(250);
  // How often to look for CPUs that came or went, which reads a file.
  static constexpr std::chrono::nanoseconds kLookForCpus = std::chrono::seconds(1);

  // All must outlive this.
  struct Parts {
    WindowSource& source;
    ColdUnwinder& cold;
    Consumers& consumers;
    WindowLine<TakenWindow>& out;
    const Clock& clock;
    Log& log;
  };
  struct Counters {
    uint64_t windows = 0;
    uint64_t early_windows = 0;     // of these: ended because a kernel map filled up
    uint64_t unwanted_windows = 0;  // of these: no consumer was attached
    uint64_t failed_drains = 0;     // tried again; their samples came later
    uint64_t failed_cpu_looks = 0;  // for CPUs that came or went; tried again
    uint64_t changes = 0;           // of frequency or filter
  };

  explicit SamplingLoop(const Parts& parts) : parts_(parts) {}

  // Begins ticks. Errors: those of WindowSource::Start.
  Result<void> Start();

  // Does what is due. Returns how long until something may be due again.
  std::chrono::nanoseconds Step();

  // Takes effect with the window that begins now, or, if taking the current one fails, with the
  // next one taken. Errors: see WindowSource::Prepare.
  Result<void> Change(const SamplingChange& change);

  // Ends the window under way. Returns the number of the first window of which every tick comes
  // after the call.
  uint64_t BeginWindow();

  // Ends ticks and takes the last window, which ends all periods. Stops trying at `until`; a drain
  // under way may take longer. Half of the time is for cold samples, so that some is left for
  // names.
  void Finish(MonotonicTime until);

  Counters counters() const;

 private:
  enum class Why { kPeriodEnds, kMapsFillUp, kAsked, kLast };

  bool TakeWindow(Why why);
  bool TakeLastWindow();
  void GiveUpLastWindow();
  void AddWhatIsMissing(Window& last) const;
  void HandOut(Window window, std::vector<ConsumerId> ended, bool is_last);
  void FollowCpus();
  std::chrono::nanoseconds TimeToNextStep(MonotonicTime now) const;
  void Count(uint64_t Counters::*counter);

  const Parts parts_;
  Accounting handed_out_;  // sum over the windows so far
  Hertz frequency_;        // of the last one
  SampledEvent event_;     // likewise
  uint64_t number_ = 0;    // of the window under way
  MonotonicTime window_began_;
  MonotonicTime look_for_cpus_;
  MonotonicTime not_before_;  // no window is taken earlier, since the last drain failed
  mutable absl::Mutex mutex_;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
