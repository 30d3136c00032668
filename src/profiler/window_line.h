// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/dropping_queue.h"

namespace pyrometer {

// Windows on their way from one thread to the next, in order. Push never waits: a full line drops
// the oldest window, and the next one takes over what it had to tell (`void T::TakeOver(const T&
// dropped)`). Thread-safe.
template <typename T>
class WindowLine {
 public:
  // REQUIRES: capacity > 0.
  explicit WindowLine(size_t capacity) : queue_(capacity) {}

  // Once the line is closed, `item` is dropped.
  void Push(T item) {
    // What was dropped may hold megabytes: it is freed here, and not under the queue's lock.
    queue_.Push(std::move(item), [](T& next, const T& dropped) { next.TakeOver(dropped); });
  }

  // Waits for a window. Returns nothing once the line is closed and empty.
  std::optional<T> Pop() { return queue_.Pop(); }

  // Accepts no more windows; those in the line can still be popped.
  void Close() { queue_.Close(); }

  size_t size() const { return queue_.size(); }
  uint64_t dropped() const { return queue_.dropped(); }

 private:
  DroppingQueue<T> queue_;
};

}  // namespace pyrometer
