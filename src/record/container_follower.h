// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/procfs.h"
#include "config/record_config.h"
#include "metadata/cgroup_lookup.h"
#include "metadata/container_source.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Finds the cgroups of containers by name, and follows those that start and end while a recording
// goes on.
class ContainerFollower {
 public:
  // What is recorded. Called on a thread of the follower's.
  struct Filter {
    std::function<Result<void>(const CgroupTarget& cgroup)> want;
    // Of one that is gone: nothing runs in it any more.
    std::function<void(const CgroupTarget& cgroup)> forget;
  };

  // Asks the source again `pause` after each answer.
  ContainerFollower(Procfs procfs, ContainerNames names, std::unique_ptr<ContainerSource> source,
                    std::chrono::nanoseconds pause = std::chrono::seconds(2));
  // Ends what the source is doing.
  ~ContainerFollower();
  ContainerFollower(const ContainerFollower&) = delete;
  ContainerFollower& operator=(const ContainerFollower&) = delete;

  // The cgroups that are there now, at least one. Errors: kNotFound, which says what there is
  // instead; those of ContainerSource.
  Result<std::vector<CgroupTarget>> Find();

  // From now on each cgroup that comes is wanted, once or until that succeeds, and each that goes
  // is forgotten, until End() has returned. REQUIRES: Find() has found something.
  void Start(Filter filter);
  void End();

  // Why something may be missing from now on: the first error of each kind since Start(), once. Any
  // thread.
  std::optional<Error> TakeError();

 private:
  struct Asked {
    std::vector<ContainerMetadata> listed;
    std::vector<CgroupTarget> found;
  };
  Result<Asked> Ask();
  void Run(const std::stop_token& stop);
  void Look(const std::stop_token& stop);
  void ForgetGone();
  void Note(Error error);

  const Procfs procfs_;
  const ContainerNames names_;
  const std::unique_ptr<ContainerSource> source_;
  const std::chrono::nanoseconds pause_;
  std::map<uint64_t, CgroupTarget> wanted_{};  // by id
  Filter filter_;
  std::set<ErrorCode> met_{};  // kinds of errors; the thread's
  absl::Mutex mutex_;
  std::optional<Error> error_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace pyrometer
