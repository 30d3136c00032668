// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "profiler/window_consumer.h"
#include "profiler/window_line.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// What became of the windows offered to one consumer.
struct ConsumerCounters {
  uint64_t consumed = 0;
  uint64_t dropped = 0;  // it did not keep up
  uint64_t waiting = 0;  // now
};

// A consumer's thread and its queue of windows. Thread-safe.
class ConsumerThread {
 public:
  // `consumer` outlives this.
  ConsumerThread(WindowConsumer& consumer, size_t capacity);
  // Waits until the consumer has consumed what is in the queue.
  ~ConsumerThread();
  ConsumerThread(const ConsumerThread&) = delete;
  ConsumerThread& operator=(const ConsumerThread&) = delete;

  // Never waits.
  void Offer(Delivery delivery) { line_.Push(std::move(delivery)); }

  // No more windows will be offered. What is in the queue is still consumed.
  void Close() { line_.Close(); }

  // Waits until everything has been consumed; false if that takes longer than `until` by `clock`.
  // REQUIRES: Close() was called.
  bool AwaitEnd(const Clock& clock, MonotonicTime until);
  void AwaitEnd();

  ConsumerCounters counters() const;

 private:
  void Run();

  WindowConsumer& consumer_;
  WindowLine<Delivery> line_;
  mutable absl::Mutex mutex_;
  uint64_t consumed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace pyrometer
