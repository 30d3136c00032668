// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace pyrometer {

// Hands values from one thread to another, in order, at most `capacity` at a time. A full queue
// makes the one who pushes wait; who cannot wait asks HasRoom first. Thread-safe.
template <typename T>
class BoundedQueue {
 public:
  // REQUIRES: capacity > 0.
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // True if a Push by the only thread that pushes will not wait.
  bool HasRoom() const {
    const std::lock_guard lock(mutex_);
    return items_.size() < capacity_ && !closed_;
  }

  // Waits for room. False, and `value` is dropped, if the queue was closed.
  bool Push(T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return items_.size() < capacity_ || closed_; });
    if (closed_) return false;
    items_.push_back(std::move(value));
    changed_.notify_all();
    return true;
  }

  // Waits for a value. Nothing once the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty() || closed_; });
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    changed_.notify_all();
    return value;
  }

  // Nothing more goes in; what is in still comes out.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace pyrometer
