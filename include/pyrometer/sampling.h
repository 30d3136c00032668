// SPDX-License-Identifier: Apache-2.0
// What the sampler shall do; also what may change while it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pyrometer/ids.h"

namespace pyrometer {

// Which tasks are sampled: those that match any of the lists; all, if every list is empty.
struct SampleFilter {
  std::vector<Pid> pids;           // with the children they fork from now on
  std::vector<std::string> comms;  // process or thread names, cut to 15 bytes as the kernel does
  std::vector<uint64_t> cgroups;   // kernfs ids (inode numbers) of directories; with descendants
  // The version 1 controller ("cpu", "pids"...) whose hierarchy the cgroups are in; "": version 2.
  std::string cgroup_controller;
};

// What is to be different from the next window on; nothing: as before.
struct SamplingChange {
  std::optional<Hertz> frequency;
  std::optional<SampleFilter> filter;
};

}  // namespace pyrometer
