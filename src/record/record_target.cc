// SPDX-License-Identifier: Apache-2.0
#include "record/record_target.h"

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/pid_namespace.h"
#include "base/text.h"
#include "metadata/cgroup_lookup.h"

namespace pyrometer {
namespace {

// The value of "<name>:\t<value>" in /proc/PID/status. Errors: kNotFound if the process is gone.
Result<std::string> StatusField(const Procfs& procfs, Pid pid, std::string_view name) {
  ASSIGN_OR_RETURN(const std::string status, ReadFile(procfs.Of(pid, "status")));
  for (const std::string_view line : Split(status, '\n')) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return std::string(Trim(line.substr(name.size() + 1)));
    }
  }
  return Fail(ErrorCode::kMalformed, "no {} in the status of process {}", name, pid.value());
}

Result<void> CheckPid(const Procfs& procfs, Pid pid) {
  const Result<std::string> group = StatusField(procfs, pid, "Tgid");
  if (!group && group.error().code() == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "no process with pid {}", pid.value());
  }
  if (!group) return Error(group.error()).With("--pid");
  if (*group != std::to_string(pid.value())) {
    return Fail(ErrorCode::kInvalid, "{} is a thread of process {}; use --pid {}", pid.value(),
                *group, *group);
  }
  if (!IsAlive(procfs, pid)) {
    return Fail(ErrorCode::kNotFound, "process {} has already exited", pid.value());
  }
  return {};
}

}  // namespace

Result<void> AddCgroup(const CgroupTarget& cgroup, SampleFilter& filter) {
  const std::string_view controller =
      cgroup.v2 ? std::string_view() : Split(cgroup.controller, ',').front();
  if (!cgroup.v2 && (controller.empty() || controller.starts_with("name="))) {
    return Fail(ErrorCode::kUnsupported,
                "{}: cannot filter by a version 1 hierarchy without a controller; give the cgroup "
                "in another hierarchy",
                cgroup.path);
  }
  if (!filter.cgroups.empty() && filter.cgroup_controller != controller) {
    return Fail(ErrorCode::kInvalid,
                "{}: all cgroups and containers of a recording must be in one hierarchy",
                cgroup.path);
  }
  filter.cgroups.push_back(cgroup.id);
  filter.cgroup_controller = controller;
  return {};
}

bool IsAlive(const Procfs& procfs, Pid pid) {
  const Result<std::string> state = StatusField(procfs, pid, "State");
  if (!state) return state.error().code() != ErrorCode::kNotFound;
  return !state->starts_with('Z') && !state->starts_with('X');
}

Result<SampleFilter> FindTargets(const Procfs& procfs, const RecordConfig& config,
                                 std::span<const CgroupTarget> named) {
  RETURN_IF_ERROR(CheckPidNamespace(procfs));
  SampleFilter filter;
  for (const Pid pid : config.pids) {
    RETURN_IF_ERROR(CheckPid(procfs, pid));
    filter.pids.push_back(pid);
  }
  filter.comms = config.comms;
  for (const std::string& path : config.cgroups) {
    ASSIGN_OR_RETURN(const CgroupTarget cgroup, FindCgroup(procfs, path));
    RETURN_IF_ERROR(AddCgroup(cgroup, filter));
  }
  for (const std::string& id : config.containers) {
    ASSIGN_OR_RETURN(const CgroupTarget cgroup, FindContainer(procfs, id));
    RETURN_IF_ERROR(AddCgroup(cgroup, filter));
  }
  for (const CgroupTarget& cgroup : named) RETURN_IF_ERROR(AddCgroup(cgroup, filter));
  return filter;
}

}  // namespace pyrometer
