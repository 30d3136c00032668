// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The user-space side of the map `denied_cgroups`. Any thread.
class DeniedCgroups {
 public:
  using Bits = std::span<__u64, PYRO_DENIED_BITS / 64>;

  // `count` and `bits` are the variables that tell the kernel side whether it must look into the
  // map.
  DeniedCgroups(int map_fd, uint32_t& count, Bits bits)
      : map_fd_(map_fd), count_(count), bits_(bits) {}

  // Errors: kExhausted.
  Result<void> Deny(uint64_t cgroup);
  void Allow(uint64_t cgroup);

  size_t size() const;

 private:
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int map_fd_;
  mutable absl::Mutex mutex_;
  uint32_t& count_;  // like bits_, written under the mutex and read by the kernel side
  const Bits bits_;
  absl::flat_hash_set<uint64_t> denied_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
