// SPDX-License-Identifier: Apache-2.0
#include "agent/targets.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "metadata/cgroup_lookup.h"
#include "metadata/cgroup_mounts.h"

namespace pyrometer {
namespace {

// No cgroup has it: ids are inode numbers.
constexpr uint64_t kNoCgroup = 0;

// The cgroup, or nothing if there is none, which `missing` is told.
Result<std::optional<CgroupTarget>> Find(const Procfs& procfs, const std::string& path,
                                         std::vector<std::string>& missing) {
  Result<CgroupTarget> found = FindCgroup(procfs, path);
  if (found) return std::optional(*std::move(found));
  if (found.error().code() != ErrorCode::kNotFound) return std::move(found).error();
  missing.push_back(path);
  return std::optional<CgroupTarget>();
}

Result<void> Want(const CgroupTarget& cgroup, SampleFilter& filter) {
  const std::string_view controller =
      cgroup.v2 ? std::string_view() : Split(cgroup.controller, ',').front();
  if (!filter.cgroups.empty() && filter.cgroup_controller != controller) {
    return Fail(ErrorCode::kInvalid, "filter.cgroups: {} is in another hierarchy than the others",
                cgroup.path);
  }
  filter.cgroups.push_back(cgroup.id);
  filter.cgroup_controller = controller;
  return {};
}

}  // namespace

bool Targets::operator==(const Targets& other) const {
  return filter.comms == other.filter.comms && filter.cgroups == other.filter.cgroups &&
         filter.cgroup_controller == other.filter.cgroup_controller && denied == other.denied &&
         missing == other.missing;
}

Result<Targets> FindTargets(const Procfs& procfs, const FilterConfig& config) {
  Targets targets;
  targets.filter.comms = config.comms;
  for (const std::string& path : config.cgroups) {
    ASSIGN_OR_RETURN(const auto cgroup, Find(procfs, path, targets.missing));
    if (cgroup) RETURN_IF_ERROR(Want(*cgroup, targets.filter));
  }
  if (!config.cgroups.empty() && targets.filter.cgroups.empty() && config.comms.empty()) {
    targets.filter.cgroups = {kNoCgroup};
  }
  for (const std::string& path : config.exclude_cgroups) {
    ASSIGN_OR_RETURN(const auto cgroup, Find(procfs, path, targets.missing));
    if (!cgroup) continue;
    if (!cgroup->v2) {
      return Fail(ErrorCode::kUnsupported,
                  "filter.exclude_cgroups: {} is of version 1; only cgroups of version 2 can be "
                  "excluded",
                  path);
    }
    targets.denied.push_back(cgroup->id);
  }
  std::ranges::sort(targets.denied);
  return targets;
}

std::vector<uint64_t> FindVersion2Cgroups(const Procfs& procfs,
                                          std::span<const std::string> paths) {
  std::vector<uint64_t> ids;
  if (paths.empty()) return ids;
  const Result<std::vector<CgroupMount>> mounts = ReadCgroupMounts(procfs);
  if (!mounts) return ids;
  const auto mount = std::ranges::find_if(*mounts, &CgroupMount::v2);
  if (mount == mounts->end()) return ids;
  for (const std::string& path : paths) {
    // Relative to the cgroup of a container that could not leave its cgroup namespace.
    if (path.starts_with("/..")) continue;
    struct stat status {};
    const std::string directory = mount->path + path;
    if (::stat(directory.c_str(), &status) == 0) ids.push_back(status.st_ino);
  }
  return ids;
}

}  // namespace pyrometer
