// SPDX-License-Identifier: Apache-2.0
#include "sampler/grace_period.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <cstdint>

#include "base/system_error.h"

namespace pyrometer {

// Putting the same map into its place again changes nothing but waits for running programs
// (kernel/bpf/syscall.c: maybe_wait_bpf_programs).
Result<void> WaitForRunningPrograms(const sampler_bpf& skeleton) {
  const uint32_t first = 0;
  const int inner = bpf_map__fd(skeleton.maps.counts_0);
  if (bpf_map_update_elem(bpf_map__fd(skeleton.maps.counts_halves), &first, &inner, BPF_ANY) == 0) {
    return {};
  }
  return SystemError(errno, "waiting for running BPF programs");
}

}  // namespace pyrometer
