// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

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
  explicit ContainerNaming(MakeSource make);

  LabelSet OnProcess(const SeenProcess& process) override;
  void OnMapping(const ProcessKey& /*process*/, const ObjectMapping& /*mapping*/,
                 const ObjectInfo& /*object*/) override {}

  // Waits for at most `patience` altogether for containers that are being asked for; others keep
  // container_id, and this is false. REQUIRES: the profiler is gone.
  bool Name(Profile& profile, std::chrono::nanoseconds patience);

 private:
  LabelSet Named(const LabelSet& labels, MonotonicTime until);

  ContainerDirectory containers_;
  std::map<std::string, LabelSet> sets_{};  // by container id
};

}  // namespace pyrometer
