// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace pyrometer {

// A bounded queue between threads. Push never waits: a full queue drops its oldest value and counts
// it. Thread-safe.
template <typename T>
class DroppingQueue {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // REQUIRES: capacity > 0.
  explicit DroppingQueue(size_t capacity) : capacity_(capacity) {}

  // Returns the value dropped, if any: the oldest, or `value` itself once the queue is closed.
  std::optional<T> Push(T value) {
    const std::lock_guard lock(mutex_);
    std::optional<T> dropped;
    if (closed_) {
      dropped = std::move(value);
    } else {
      if (items_.size() >= capacity_) dropped = TakeFirst();
      items_.push_back(std::move(value));
      changed_.notify_one();
    }
    if (dropped) ++dropped_;
    return dropped;
  }

  // Waits for a value. Returns nothing once the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty() || closed_; });
    return TakeFirst();
  }

  // The same, but also returns nothing at the deadline.
  std::optional<T> Pop(Deadline deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return !items_.empty() || closed_; });
    return TakeFirst();
  }

  // Accepts no more values; those in the queue can still be popped.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

  // How many values Push has dropped so far.
  uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  // REQUIRES: the mutex is held.
  std::optional<T> TakeFirst() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    return value;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  uint64_t dropped_ = 0;
  bool closed_ = false;
};

}  // namespace pyrometer
