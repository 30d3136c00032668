// SPDX-License-Identifier: Apache-2.0
#include "agent/excluded_cgroups.h"

#include <utility>

namespace pyrometer {

ExcludedCgroups::ExcludedCgroups(Deny deny, Allow allow, Log& log)
    : deny_(std::move(deny)), allow_(std::move(allow)), log_(log) {}

void ExcludedCgroups::Exclude(std::span<const uint64_t> named, std::span<const uint64_t> dropped) {
  std::set<uint64_t> wanted(named.begin(), named.end());
  wanted.insert(dropped.begin(), dropped.end());
  // What goes makes room.
  std::erase_if(excluded_, [&](uint64_t cgroup) {
    if (wanted.contains(cgroup)) return false;
    allow_(cgroup);
    return true;
  });
  for (const std::span<const uint64_t> cgroups : {named, dropped}) {
    for (const uint64_t cgroup : cgroups) {
      if (excluded_.contains(cgroup)) continue;
      const Result<void> denied = deny_(cgroup);
      if (denied) {
        excluded_.insert(cgroup);
      } else {
        log_.Failed("excluding a cgroup", denied.error());
      }
    }
  }
}

}  // namespace pyrometer
