// SPDX-License-Identifier: Apache-2.0
#include "sampler/denied_cgroups.h"

#include <bpf/bpf.h>

#include <atomic>
#include <cerrno>

#include "base/system_error.h"

namespace pyrometer {

Result<void> DeniedCgroups::Deny(uint64_t cgroup) {
  const absl::MutexLock lock(&mutex_);
  if (denied_.contains(cgroup)) return {};
  if (denied_.size() >= PYRO_MAX_DENIED) {
    return Fail(ErrorCode::kExhausted, "{} cgroups are denied already, and no more can be",
                denied_.size());
  }
  const uint8_t yes = 1;
  if (bpf_map_update_elem(map_fd_, &cgroup, &yes, BPF_ANY) != 0) {
    return SystemError(errno, "denying a cgroup");
  }
  denied_.insert(cgroup);
  Tell();
  return {};
}

void DeniedCgroups::Allow(uint64_t cgroup) {
  const absl::MutexLock lock(&mutex_);
  if (denied_.erase(cgroup) == 0) return;
  bpf_map_delete_elem(map_fd_, &cgroup);
  Tell();
}

void DeniedCgroups::Tell() {
  if (++last_generation_ == 0) ++last_generation_;
  std::atomic_ref<uint32_t>(generation_).store(denied_.empty() ? 0 : last_generation_);
}

size_t DeniedCgroups::size() const {
  const absl::MutexLock lock(&mutex_);
  return denied_.size();
}

}  // namespace pyrometer
