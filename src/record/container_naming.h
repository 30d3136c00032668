// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "metadata/container_directory.h"
#include "metadata/container_source.h"
#include "process/process_observer.h"
#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Labels the samples of processes in containers: while it records with container_id, and at the end
// with the names that the container runtime knows (LabelsOfContainer()). Where no process is in a
// container, no runtime is asked.
class ContainerNaming final : public ProcessObserver {
 public:
  using MakeSource = std::function<std::unique_ptr<ContainerSource>()>;
  // `clock` outlives it.
  ContainerNaming(MakeSource make, const Clock& clock);

  LabelSet OnProcess(const SeenProcess& process) override;

  // Waits for at most `patience` altogether for containers that are being asked for; others keep
  // container_id. REQUIRES: the profiler is gone.
  void Name(Profile& profile, std::chrono::nanoseconds patience);

 private:
  LabelSet Named(const LabelSet& labels, MonotonicTime until);

  const Clock& clock_;
  ContainerDirectory containers_;
  std::map<std::string, LabelSet> sets_{};  // by container id
};

}  // namespace pyrometer
