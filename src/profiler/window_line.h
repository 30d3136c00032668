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

// A bounded queue of windows from one thread to the next. Push never waits: when `capacity` windows
// are waiting, it drops the oldest, and the next one takes over its information
// (`void T::TakeOver(const T& dropped)`). Thread-safe.
template <typename T>
class WindowLine {
 public:
  // REQUIRES: capacity > 0.
  explicit WindowLine(size_t capacity) : capacity_(capacity) {}

  // Once the line is closed, `item` is dropped at once.
  void Push(T item) {
    std::optional<T> dropped;  // destroyed when the lock is free again: it may hold megabytes
    const std::lock_guard lock(mutex_);
    if (closed_) {
      ++dropped_;
      return;
    }
    items_.push_back(std::move(item));
    if (items_.size() > capacity_) {
      dropped.emplace(std::move(items_.front()));
      items_.pop_front();
      items_.front().TakeOver(*dropped);
      ++dropped_;
    }
    changed_.notify_one();
  }

  // Waits for a window. Returns nothing once the line is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty() || closed_; });
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  // Accepts no more windows; those in the line can still be popped.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  uint64_t dropped_ = 0;
  bool closed_ = false;
};

}  // namespace pyrometer
