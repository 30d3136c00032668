// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "profiler/consumer_thread.h"
#include "profiler/schedule.h"
#include "profiler/window_consumer.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// The attached consumers: when their periods end, and a thread for each. Thread-safe.
class Consumers {
 public:
  // Windows queued for one consumer: a minute or two, or seconds while windows have to end early.
  // Beyond that the oldest is dropped.
  static constexpr size_t kWaitingWindows = 16;

  // `clock` must outlive this.
  Consumers(std::chrono::nanoseconds longest_window, const Clock& clock)
      : clock_(clock), schedule_(longest_window) {}

  // `consumer` must outlive its attachment. It gets the windows from number `first` on.
  ConsumerId Attach(WindowConsumer& consumer, const WindowPeriod& period, const Moment& now,
                    uint64_t first);
  // The period under way ends as if it had begun now; later ones follow. Nothing if there is no
  // such consumer.
  void SetPeriod(ConsumerId id, const WindowPeriod& period, const Moment& now);
  // Returns when the consumer has consumed what is in its queue. REQUIRES: not on its thread.
  void Detach(ConsumerId id);
  bool empty() const;

  // All periods begin anew.
  void Restart(const Moment& now);
  MonotonicTime EndOfWindow(MonotonicTime begin) const;
  std::vector<ConsumerId> EndPeriods(const Moment& now);
  std::vector<ConsumerId> EndAll() const;

  // Queues window `number` for every consumer; `ended` are those whose periods end with it. Never
  // waits.
  void Offer(uint64_t number, const std::shared_ptr<const NamedWindow>& window,
             std::span<const ConsumerId> ended, std::span<const MissedWindow> missed);

  // No more windows will be offered. True if all consumers have emptied their queues by `until`.
  bool Close(MonotonicTime until);
  // The same, however long that takes.
  void Close();

  ConsumerCounters counters() const;  // sums over all consumers that were ever attached

 private:
  struct Attached {
    uint64_t first = 0;
    std::shared_ptr<ConsumerThread> thread;
  };

  std::vector<std::shared_ptr<ConsumerThread>> Threads() const;

  const Clock& clock_;
  mutable absl::Mutex mutex_;
  Schedule schedule_ ABSL_GUARDED_BY(mutex_);
  ConsumerId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ConsumerId, Attached> attached_ ABSL_GUARDED_BY(mutex_);
  ConsumerCounters of_detached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
