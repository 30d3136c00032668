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

// Hands values from thread to thread, in order, at most `capacity` at a time, and never makes the
// one who pushes wait: a full queue drops its oldest value and counts it. Thread-safe.
template <typename T>
class DroppingQueue {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // REQUIRES: capacity > 0.
  explicit DroppingQueue(size_t capacity) : capacity_(capacity) {}

  // What had to be dropped: the oldest value, or `value` itself once the queue is closed.
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

  // Waits for a value. Nothing once the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty() || closed_; });
    return TakeFirst();
  }

  // The same, but nothing at the deadline, either.
  std::optional<T> Pop(Deadline deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return !items_.empty() || closed_; });
    return TakeFirst();
  }

  // Nothing more goes in; what is in still comes out.
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
