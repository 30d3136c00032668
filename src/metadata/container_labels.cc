// SPDX-License-Identifier: Apache-2.0
#include "metadata/container_labels.h"

#include <initializer_list>
#include <map>

#include "base/printable.h"

namespace pyrometer {
namespace {

constexpr size_t kSuffixLength = 5;  // of a generated name, after its '-'

std::string LabelAt(const std::map<std::string, std::string>& texts, const char* key) {
  const auto at = texts.find(key);
  return at == texts.end() ? "" : at->second;
}

std::string FirstOf(std::initializer_list<std::string> names) {
  for (const std::string& name : names) {
    if (!name.empty()) return name;
  }
  return "";
}

// The name of the ReplicaSet, or whatever it was generated from: "web-7c5b" of "web-7c5b-x2x4z".
std::string_view WithoutSuffix(std::string_view name) {
  const size_t dash = name.rfind('-');
  const bool has_suffix = dash != std::string_view::npos && name.size() - dash - 1 == kSuffixLength;
  return has_suffix ? name.substr(0, dash) : std::string_view();
}

std::string_view DeploymentOf(std::string_view pod, std::string_view hash) {
  const std::string_view set = WithoutSuffix(pod);
  if (hash.empty() || !set.ends_with(hash)) return {};
  const std::string_view name = set.substr(0, set.size() - hash.size());
  return name.size() > 1 && name.ends_with('-') ? name.substr(0, name.size() - 1)
                                                : std::string_view();
}

std::string_view StatefulSetOf(std::string_view pod) {
  const size_t dash = pod.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == pod.size()) return {};
  const bool has_number = pod.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
  return has_number ? pod.substr(0, dash) : std::string_view();
}

// Whole minutes since 1970, of which there have been 8 digits since 1989.
bool IsMinutes(std::string_view text) {
  constexpr std::string_view kFirst = "21038400";  // 2010
  constexpr std::string_view kLast = "68374080";   // 2100
  return text.size() == kFirst.size() &&
         text.find_first_not_of("0123456789") == std::string_view::npos && text >= kFirst &&
         text < kLast;
}

Workload ManagerOf(const Workload& owner, std::string_view hash) {
  const size_t dash = owner.name.rfind('-');
  const bool has_suffix = dash != std::string::npos && dash > 0;
  const std::string_view suffix =
      has_suffix ? std::string_view(owner.name).substr(dash + 1) : std::string_view();
  if (owner.kind == "Node") return {};
  if (owner.kind == "ReplicaSet" && !suffix.empty() && suffix == hash) {
    return {.kind = "Deployment", .name = owner.name.substr(0, dash)};
  }
  if (owner.kind == "Job" && IsMinutes(suffix)) {
    return {.kind = "CronJob", .name = owner.name.substr(0, dash)};
  }
  return owner;
}

void AddLabel(Labels& labels, std::string_view name, std::string_view value) {
  if (!value.empty()) labels.emplace_back(name, Printable(value));
}

}  // namespace

Workload WorkloadOf(const PodMetadata& pod) {
  const std::string hash = LabelAt(pod.labels, "pod-template-hash");
  if (!pod.owner.kind.empty() && !pod.owner.name.empty()) return ManagerOf(pod.owner, hash);
  if (const std::string_view name = DeploymentOf(pod.name, hash); !name.empty()) {
    return {.kind = "Deployment", .name = std::string(name)};
  }
  if (LabelAt(pod.labels, "statefulset.kubernetes.io/pod-name") == pod.name) {
    if (const std::string_view name = StatefulSetOf(pod.name); !name.empty()) {
      return {.kind = "StatefulSet", .name = std::string(name)};
    }
  }
  return {};
}

std::string AnnotatedService(const ContainerMetadata& container) {
  const PodMetadata& pod = *container.pod;
  return FirstOf({LabelAt(pod.annotations, "pyrometer.io/service-name"),
                  LabelAt(pod.annotations, "pyroscope.io/service_name"),
                  LabelAt(container.labels, "pyrometer.io/service-name")});
}

std::string ServiceOfContainer(const ContainerMetadata& container) {
  const PodMetadata& pod = *container.pod;
  return FirstOf({AnnotatedService(container), LabelAt(pod.labels, "app.kubernetes.io/name"),
                  WorkloadOf(pod).name, LabelAt(container.labels, "com.docker.compose.service"),
                  container.name});
}

Labels LabelsOfContainer(const ContainerMetadata& container, std::string_view otherwise) {
  const PodMetadata& pod = *container.pod;
  const Workload workload = WorkloadOf(pod);
  const std::string service = ServiceOfContainer(container);
  Labels labels;  // by name
  AddLabel(labels, "container", container.name);
  AddLabel(labels, "namespace", pod.name_space);
  AddLabel(labels, "pod", pod.name);
  AddLabel(labels, "service_name", service.empty() ? otherwise : service);
  AddLabel(labels, "workload_kind", workload.kind);
  AddLabel(labels, "workload_name", workload.name);
  return labels;
}

}  // namespace pyrometer
