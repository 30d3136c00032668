// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  // REQUIRES: capacity > 0.
  explicit DroppingQueue(size_t capacity) : capacity_(capacity) {}

  // Returns the value dropped, if any: the oldest, or `value` itself once the queue is closed.
  std::optional<T> Push(T value) {
    return Push(std::move(value), [](T& /*next*/, const T& /*dropped*/) {});
  }

  // The same; `hand_over(T& next, const T& dropped)` lets the value that is now the oldest take
  // over what the dropped one had to tell, before anybody can pop it.
  template <typename HandOver>
  std::optional<T> Push(T value, const HandOver& hand_over) {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      ++dropped_;
      return value;
    }
    items_.push_back(std::move(value));
    changed_.notify_one();
    if (items_.size() <= capacity_) return std::nullopt;
    ++dropped_;
    std::optional<T> dropped = TakeFirst();
    hand_over(items_.front(), *dropped);
    return dropped;
  }

  // Waits for a value. Returns nothing once the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty() || closed_; });
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
