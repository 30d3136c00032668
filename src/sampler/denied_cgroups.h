// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The user-space side of the map `denied_cgroups`. Any thread.
class DeniedCgroups {
 public:
  // `generation` is the variable that tells the kernel side whether it must look into the map, and
  // whether what it found there still holds.
  DeniedCgroups(int map_fd, uint32_t& generation) : map_fd_(map_fd), generation_(generation) {}

  // Errors: kExhausted.
  Result<void> Deny(uint64_t cgroup);
  void Allow(uint64_t cgroup);

  size_t size() const;

 private:
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int map_fd_;
  mutable absl::Mutex mutex_;
  uint32_t& generation_;  // written under the mutex, read by the kernel side
  uint32_t last_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<uint64_t> denied_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
