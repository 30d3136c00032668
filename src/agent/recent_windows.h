// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "agent/window_shipper.h"
#include "pyrometer/labels.h"
#include "pyrometer/profile.h"
#include "server/agent_status.h"

namespace pyrometer {

// The last windows, for the local page: those of kMaxFlameGraphSpan, as far as they fit into a
// budget of bytes, with the names of their locations. Thread-safe.
class RecentWindows {
 public:
  // A sample of 30 frames takes some 300 bytes, a location 500; 99 Hz on two busy CPUs are 200 kB a
  // window, and as much again for the locations that no earlier window has.
  explicit RecentWindows(size_t most_bytes) : most_bytes_(most_bytes) {}

  void Add(ShippedWindow window);

  // Whether a sample of a profile with these labels is wanted.
  using Keep = std::function<bool(const ProfileSample& sample, const Labels& common)>;
  struct Recent {
    // May be empty. Samples that are equal are not added up: that is left to the encoder.
    Profile profile;
    uint64_t samples = 0;  // in all, wanted or not
    // Of the windows' frequencies; Profile::frequency is the last one's.
    Hertz lowest;
    Hertz highest;
  };

  // The windows that began at or after `since`. Null keeps all samples.
  Recent Since(std::chrono::system_clock::time_point since, const Keep& keep = nullptr) const;

  // The labels in which the samples of these windows differ, those of Kubernetes first.
  std::vector<LabelChoice> Choices(std::chrono::system_clock::time_point since) const;

  size_t bytes() const;

  // Forgets all but the latest window, when memory is short.
  void Shed();

 private:
  struct Kept {
    ShippedWindow window;
    std::chrono::system_clock::time_point begin;
    size_t bytes = 0;               // without locations
    std::vector<uint64_t> samples;  // of each profile
  };
  std::vector<Kept> WindowsSince(std::chrono::system_clock::time_point since) const;
  // A location counts once, however many windows have it.
  void Count(const std::vector<Profile>& window) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Uncount(const std::vector<Profile>& window) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_bytes_;
  mutable absl::Mutex mutex_;
  std::deque<Kept> windows_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const Location*, uint32_t> uses_ ABSL_GUARDED_BY(mutex_);  // by profiles
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pyrometer
