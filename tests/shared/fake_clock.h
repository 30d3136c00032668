// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace pyrometer {

// Stands still until it is moved. Nobody who waits by it is told of that: see AwaitUntil() for who
// looks again, and when. Thread-safe.
class FakeClock : public Clock {
 public:
  MonotonicTime Now() const override {
    const std::lock_guard lock(mutex_);
    return MonotonicTime(now_);
  }
  std::chrono::system_clock::time_point WallNow() const override {
    const std::lock_guard lock(mutex_);
    return std::chrono::system_clock::time_point(std::chrono::nanoseconds(now_) + wall_offset_);
  }
  // That is what the wall clock shows now.
  void SetWall(std::chrono::system_clock::time_point wall) {
    const std::lock_guard lock(mutex_);
    wall_offset_ = wall.time_since_epoch() - std::chrono::nanoseconds(now_);
  }
  void Advance(std::chrono::nanoseconds time) {
    const std::lock_guard lock(mutex_);
    now_ += static_cast<uint64_t>(time.count());
  }

 private:
  mutable std::mutex mutex_;
  uint64_t now_ = 1'000'000'000'000;
  // Far in the future: nothing real has been written since.
  std::chrono::nanoseconds wall_offset_{std::chrono::hours(1'000'000)};
};

}  // namespace pyrometer
