// SPDX-License-Identifier: Apache-2.0
// What both kinds of samples have in common, as the kernel side writes it.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/sample.h"

namespace pyrometer {

inline std::string ToText(const char (&comm)[PYRO_COMM_LEN]) {
  return {comm, strnlen(comm, sizeof(comm))};
}

inline ProcessKey ToProcessKey(const pyro_sample_key& key) {
  return {Pid(key.pid), StartTime(key.start_boottime_ns / PYRO_CLOCK_TICK_NS)};
}

inline EventKind ToEventKind(const pyro_sample_key& key) {
  static_assert(kEventKinds == PYRO_EVENT_KINDS);
  static_assert(static_cast<int>(EventKind::kPageFaults) == PYRO_EVENT_PAGE_FAULTS);
  return static_cast<EventKind>(key.event);
}

// `addresses` are bpf_get_stack()'s: all but the first are return addresses, which may lie beyond
// the calling function, so one is subtracted.
inline void AppendKernelFrames(std::vector<Frame>& frames, std::span<const __u64> addresses) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    frames.emplace_back(i == 0 ? addresses[i] : addresses[i] - 1);
  }
}

}  // namespace pyrometer
