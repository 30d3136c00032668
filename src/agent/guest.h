// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/cpu_budget.h"
#include "agent/own_cost.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Keeps the agent a good guest of its host: measures what it uses, and says what to do when that is
// more than it may. Look() is called by one thread; status() by any.
class Guest {
 public:
  // How often to look.
  static constexpr std::chrono::seconds kInterval{10};

  struct Limits {
    Hertz frequency;      // wanted
    double cpu = 0;       // share of one CPU
    uint64_t memory = 0;  // bytes, resident and in the kernel
  };
  struct Advice {
    std::optional<Hertz> frequency;  // sample so often from now on
    // Memory is short: give up what can be had again. If it stays short all the same, the next time
    // is after a pause that doubles, up to ten minutes: making it again takes CPU time.
    bool shed = false;
  };
  struct Status {
    OwnUse use;
    double cpu = 0;  // share of one CPU, over the last minute; before that, of what there is
    Hertz frequency;
    bool over_cpu = false;     // at the lowest frequency, and still too much
    bool over_memory = false;  // right now
    uint64_t sheds = 0;        // times that memory was short
    uint64_t slowdowns = 0;    // times that the frequency was lowered
  };

  Guest(const Limits& limits, std::function<OwnUse()> measure);

  Advice Look(MonotonicTime now);

  // New limits; what was measured stays. The frequency begins anew at what is wanted.
  void SetLimits(const Limits& limits);

  Status status() const;

 private:
  bool ShouldShed(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<OwnUse()> measure_;
  mutable absl::Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  CpuBudget budget_ ABSL_GUARDED_BY(mutex_);
  Status status_ ABSL_GUARDED_BY(mutex_);
  std::optional<MonotonicTime> last_look_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime next_shed_ ABSL_GUARDED_BY(mutex_);
  std::chrono::nanoseconds shed_pause_ ABSL_GUARDED_BY(mutex_) = 2 * kInterval;
};

}  // namespace pyrometer
