// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/procfs.h"
#include "config/record_config.h"
#include "metadata/cgroup_lookup.h"
#include "metadata/container_source.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Finds the cgroups of containers by name, and follows those that start while a recording goes on:
// the runtime is asked every 2 s.
class ContainerFollower {
 public:
  // Takes a cgroup into the recording.
  using Want = std::function<Result<void>(const CgroupTarget& cgroup)>;

  ContainerFollower(Procfs procfs, ContainerNames names, std::unique_ptr<ContainerSource> source);
  // Ends what the source is doing.
  ~ContainerFollower();
  ContainerFollower(const ContainerFollower&) = delete;
  ContainerFollower& operator=(const ContainerFollower&) = delete;

  // The cgroups that are there now, at least one. Errors: kNotFound, which says what there is
  // instead; those of ContainerSource.
  Result<std::vector<CgroupTarget>> Find();

  // From now on `want` is called for each cgroup that comes, once, on a thread of this, until End()
  // has returned. REQUIRES: Find() has found something.
  void Start(Want want);

  // The first error since Start(), after which something may be missing.
  std::optional<Error> End();

 private:
  struct Asked {
    std::vector<ContainerMetadata> listed;
    std::vector<CgroupTarget> found;
  };
  Result<Asked> Ask();
  void Run(const std::stop_token& stop);
  Result<void> Look();

  const Procfs procfs_;
  const ContainerNames names_;
  const std::unique_ptr<ContainerSource> source_;
  std::set<uint64_t> wanted_{};  // ids of cgroups
  Want want_;
  std::optional<Error> error_;  // of the thread
  std::jthread thread_;
};

}  // namespace pyrometer
