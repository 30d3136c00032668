// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "metadata/cgroup_identity.h"
#include "metadata/container_directory.h"
#include "process/process_observer.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// Labels each process with what people look for it by:
//
//   service_name  the systemd service it is part of, without ".service"; of others the name of the
//                 program; "kernel" for the kernel's threads, which have hundreds of names, and for
//                 interrupts of idle CPUs
//   systemd_unit  the same service, or for sessions and scopes the slice they are in
//   container_id  of the innermost container that it is in; then without systemd_unit
//
// The last two where there are such. Those of containers become the names of Kubernetes when
// profiles are made, see late_labels.h; here they are looked up early, so that they are known by
// then. Each label set is a profile of its own for every server, so their number is bounded: beyond
// `most_sets` the others are one, "other". Called with the tracker's lock held, like every
// ProcessObserver.
class ProcessLabels final : public ProcessObserver {
 public:
  static constexpr std::string_view kServiceName = "service_name";
  static constexpr std::string_view kSystemdUnit = "systemd_unit";
  static constexpr std::string_view kContainerId = "container_id";
  static constexpr std::string_view kKernel = "kernel";
  static constexpr std::string_view kOther = "other";

  // `containers` may be null, and outlives this.
  explicit ProcessLabels(size_t most_sets = 1000, ContainerDirectory* containers = nullptr);

  LabelSet OnProcess(const SeenProcess& process) override;
  LabelSet OfUnknown(Pid pid, std::string_view comm) override;
  void OnMapping(const ProcessKey& process, const ObjectMapping& mapping,
                 const ObjectInfo& object) override;

 private:
  LabelSet Shared(Labels labels);
  bool IsKernelThread(const SeenProcess& process) const;

  const size_t most_sets_;
  ContainerDirectory* const containers_;
  const LabelSet kernel_;
  const LabelSet other_;
  // Held as long as a process or sample has them; a set that nobody bears any more makes room.
  std::map<Labels, std::weak_ptr<const Labels>> known_;
};

}  // namespace pyrometer
