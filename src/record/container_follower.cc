// SPDX-License-Identifier: Apache-2.0
#include "record/container_follower.h"

#include <pthread.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "base/stoppable_sleep.h"
#include "record/container_targets.h"

namespace pyrometer {
namespace {

constexpr std::chrono::seconds kPause{2};

}  // namespace

ContainerFollower::ContainerFollower(Procfs procfs, ContainerNames names,
                                     std::unique_ptr<ContainerSource> source)
    : procfs_(std::move(procfs)), names_(std::move(names)), source_(std::move(source)) {}

ContainerFollower::~ContainerFollower() {
  static_cast<void>(End());
}

Result<ContainerFollower::Asked> ContainerFollower::Ask() {
  Result<std::vector<ContainerMetadata>> listed = source_->List();
  if (!listed) return std::move(listed).error().With("asking for containers by name");
  ASSIGN_OR_RETURN(const auto cgroups, ListContainerCgroups(procfs_));
  std::vector<CgroupTarget> found = CgroupsOf(names_, *listed, cgroups);
  return Asked{.listed = *std::move(listed), .found = std::move(found)};
}

Result<std::vector<CgroupTarget>> ContainerFollower::Find() {
  ASSIGN_OR_RETURN(Asked asked, Ask());
  if (asked.found.empty()) return NoCgroupOf(names_, asked.listed);
  for (const CgroupTarget& cgroup : asked.found) wanted_.insert(cgroup.id);
  return std::move(asked.found);
}

void ContainerFollower::Start(Want want) {
  want_ = std::move(want);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void ContainerFollower::Run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "new-containers");
  while (true) {
    SleepFor(kPause, stop);
    if (stop.stop_requested()) return;
    Result<void> looked = Look();
    if (!looked && !error_ && !stop.stop_requested()) error_ = std::move(looked).error();
  }
}

Result<void> ContainerFollower::Look() {
  ASSIGN_OR_RETURN(const Asked asked, Ask());
  for (const CgroupTarget& cgroup : asked.found) {
    if (wanted_.contains(cgroup.id)) continue;
    RETURN_IF_ERROR(want_(cgroup));
    wanted_.insert(cgroup.id);
  }
  return {};
}

std::optional<Error> ContainerFollower::End() {
  thread_.request_stop();
  source_->Cancel();
  if (thread_.joinable()) thread_.join();
  return std::exchange(error_, std::nullopt);
}

}  // namespace pyrometer
