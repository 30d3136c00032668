// SPDX-License-Identifier: Apache-2.0
#include "record/container_follower.h"

#include <pthread.h>

#include <map>
#include <string>
#include <utility>

#include "base/stoppable_sleep.h"
#include "record/container_targets.h"

namespace pyrometer {

ContainerFollower::ContainerFollower(Procfs procfs, ContainerNames names,
                                     std::unique_ptr<ContainerSource> source,
                                     std::chrono::nanoseconds pause)
    : procfs_(std::move(procfs)),
      names_(std::move(names)),
      source_(std::move(source)),
      pause_(pause) {}

ContainerFollower::~ContainerFollower() {
  End();
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
  for (const CgroupTarget& cgroup : asked.found) wanted_.emplace(cgroup.id, cgroup);
  return std::move(asked.found);
}

void ContainerFollower::Start(Filter filter) {
  filter_ = std::move(filter);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void ContainerFollower::Run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "new-containers");
  while (true) {
    SleepFor(pause_, stop);
    if (stop.stop_requested()) return;
    Look(stop);
  }
}

void ContainerFollower::Look(const std::stop_token& stop) {
  ForgetGone();  // which makes room
  Result<Asked> asked = Ask();
  if (stop.stop_requested()) return;
  if (!asked) return Note(std::move(asked).error());
  for (const CgroupTarget& cgroup : asked->found) {
    if (wanted_.contains(cgroup.id)) continue;
    Result<void> done = filter_.want(cgroup);
    if (done) {
      wanted_.emplace(cgroup.id, cgroup);
      continue;
    }
    const bool is_full = done.error().code() == ErrorCode::kExhausted;
    Note(std::move(done).error());
    if (is_full) return;
  }
}

// Not what the runtime lists no more: that may run on, as while the runtime is restarted.
void ContainerFollower::ForgetGone() {
  std::erase_if(wanted_, [this](const auto& wanted) {
    if (Exists(wanted.second)) return false;
    filter_.forget(wanted.second);
    return true;
  });
}

void ContainerFollower::Note(Error error) {
  if (!met_.insert(error.code()).second) return;
  const absl::MutexLock lock(&mutex_);
  error_ = std::move(error);
}

void ContainerFollower::End() {
  thread_.request_stop();
  source_->Cancel();
  if (thread_.joinable()) thread_.join();
}

std::optional<Error> ContainerFollower::TakeError() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(error_, std::nullopt);
}

}  // namespace pyrometer
