// SPDX-License-Identifier: Apache-2.0
// The labels of a process as they are before the rules of relabel_configs.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "metadata/container_metadata.h"
#include "metadata/relabel.h"
#include "process/process_observer.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// Default labels; see ProcessLabels.
inline constexpr std::string_view kServiceNameLabel = "service_name";
inline constexpr std::string_view kSystemdUnitLabel = "systemd_unit";
inline constexpr std::string_view kContainerIdLabel = "container_id";

// Meta labels: for rules only. Of those for which there is nothing to say, there is none.
//
//   __meta_cgroup_path         of all its cgroups the one that tells most; see TellingCgroup()
//   __meta_cgroup_v2_path      its cgroup of version 2, where that is another
//   __meta_container_id        of the innermost container
//   __meta_kubernetes_pod_uid, __meta_kubernetes_pod_qos_class
//                              of its pod, whether or not anybody knows more of that
//   __meta_systemd_unit        outside of containers, its service, else its slice
//   __meta_systemd_slice       the innermost slice, also of a container
//   __meta_process_comm        its name, as the kernel knows it: 15 bytes
//   __meta_process_executable  the path of its program, in its own root directory
//   __meta_process_pid
//   __meta_process_otel_service_name  the service that its environment names; see OtelServiceName()
inline constexpr std::string_view kMetaCgroupPath = "__meta_cgroup_path";
inline constexpr std::string_view kMetaCgroupV2Path = "__meta_cgroup_v2_path";
inline constexpr std::string_view kMetaContainerId = "__meta_container_id";
inline constexpr std::string_view kMetaPodUid = "__meta_kubernetes_pod_uid";
inline constexpr std::string_view kMetaPodQosClass = "__meta_kubernetes_pod_qos_class";
inline constexpr std::string_view kMetaSystemdUnit = "__meta_systemd_unit";
inline constexpr std::string_view kMetaSystemdSlice = "__meta_systemd_slice";
inline constexpr std::string_view kMetaProcessComm = "__meta_process_comm";
inline constexpr std::string_view kMetaProcessExecutable = "__meta_process_executable";
inline constexpr std::string_view kMetaProcessPid = "__meta_process_pid";
inline constexpr std::string_view kMetaProcessOtelServiceName = "__meta_process_otel_service_name";

// Which of them are captured.
enum class MetaLabels {
  kNone,
  kContainer,  // of processes in containers their id and cgroups
  kAll,
};

// The labels of `process`, by what /proc says of it now; where it was its parent was, as
// `process.inherited` tells, if it is gone. Without __meta_process_pid: processes that differ in
// nothing else share their labels. REQUIRES: `process` is no kernel thread.
Labels LabelsOf(const SeenProcess& process, MetaLabels meta);

// Of what is no process of its own, or of none that is known.
Labels LabelsOfName(std::string_view name, MetaLabels meta);

// `labels` with __meta_process_pid.
Labels WithPid(Labels labels, Pid pid);

// `labels` with that name of the service and no other; "" is none.
Labels WithOtelServiceName(Labels labels, std::string_view service);

// "" if there is none.
std::string_view ValueIn(const Labels& labels, std::string_view name);

// `labels` as rules see them: where `container` is known, not null, with its names in the place of
// container_id and with its meta labels. The service is the first that there is of: the name by an
// annotation (AnnotatedService()), the one in the environment of the process, the container's
// (ServiceOfContainer()), the one before.
Labels BeforeRules(const Labels& labels, const ContainerMetadata* container);

// True if the pod's annotation pyrometer.io/profile is "false".
bool OptsOut(const ContainerMetadata& container);

// What `rules` make of the labels of a process in `container`, null if it is in none or nothing is
// known of it; nothing if they drop them, or the pod opts out. There is always a service_name:
// where the rules leave none, it is the name of the program.
struct RuledLabels {
  std::optional<Labels> labels;
  // All processes of its cgroup are dropped, whatever these are.
  bool drops_cgroup = false;
};
RuledLabels ApplyRules(const Relabeling& rules, const Labels& labels,
                       const ContainerMetadata* container = nullptr);

}  // namespace pyrometer
