// SPDX-License-Identifier: Apache-2.0
// What to sample, and what can change while sampling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pyrometer/ids.h"

namespace pyrometer {

// Which tasks are sampled: those that match any of the lists; all if every list is empty.
struct SampleFilter {
  std::vector<Pid> pids;           // with the children they fork from now on
  std::vector<std::string> comms;  // process or thread names, cut to 15 bytes as the kernel does
  std::vector<uint64_t> cgroups;   // kernfs ids (inode numbers) of directories; with descendants
  // The version 1 controller ("cpu", "pids"...) whose hierarchy the cgroups are in; "": version 2.
  std::string cgroup_controller;
};

// What changes with the next window; what is not set stays.
struct SamplingChange {
  std::optional<Hertz> frequency;
  std::optional<SampleFilter> filter;
};

}  // namespace pyrometer
