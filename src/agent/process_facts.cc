// SPDX-License-Identifier: Apache-2.0
#include "agent/process_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "metadata/cgroup_identity.h"
#include "metadata/container_labels.h"
#include "metadata/container_meta_labels.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

// Where a process is.
struct Whereabouts {
  CgroupIdentity identity;
  std::string path;     // of the cgroup that tells most
  std::string v2_path;  // "" where there is no version 2
};

void Add(Labels& labels, std::string_view name, std::string_view value) {
  if (!value.empty()) labels.emplace_back(name, Printable(value, Relabeling::kLongestValue));
}

Whereabouts ReadWhereabouts(std::string_view cgroups) {
  const std::string_view path = TellingCgroup(cgroups);
  return {.identity = IdentityOf(path),
          .path = std::string(path),
          .v2_path = std::string(Version2Cgroup(cgroups))};
}

// A process that can no longer be asked is where its parent was.
Whereabouts WhereaboutsOf(const SeenProcess& process) {
  if (process.directory != nullptr) {
    if (const Result<std::string> text = process.directory->Cgroups()) {
      return ReadWhereabouts(*text);
    }
  }
  if (process.inherited == nullptr) return {};
  const auto inherited = [&](std::string_view name) {
    return std::string(ValueIn(*process.inherited, name));
  };
  return {.identity = {.container_id = inherited(kContainerIdLabel),
                       .systemd_unit = inherited(kSystemdUnitLabel)},
          .path = inherited(kMetaCgroupPath),
          .v2_path = inherited(kMetaCgroupV2Path)};
}

// `program` names what no systemd service does.
void AddDefaults(Labels& labels, const CgroupIdentity& identity, std::string_view program) {
  const std::string_view service = ServiceOfUnit(identity.systemd_unit);
  Add(labels, kContainerIdLabel, identity.container_id);
  Add(labels, kServiceNameLabel, service.empty() ? program : service);
  Add(labels, kSystemdUnitLabel, identity.systemd_unit);
}

void AddContainerMeta(Labels& labels, const Whereabouts& where) {
  Add(labels, kMetaCgroupPath, where.path);
  if (where.v2_path != where.path) Add(labels, kMetaCgroupV2Path, where.v2_path);
  Add(labels, kMetaContainerId, where.identity.container_id);
  const CgroupPod pod = PodOf(where.path);
  Add(labels, kMetaPodQosClass, pod.qos);
  Add(labels, kMetaPodUid, pod.uid);
}

void AddMeta(Labels& labels, const Whereabouts& where, const SeenProcess& process) {
  AddContainerMeta(labels, where);
  Add(labels, kMetaProcessComm, process.comm);
  if (process.directory != nullptr) {
    const Result<std::string> executable = process.directory->Executable();
    if (executable) Add(labels, kMetaProcessExecutable, *executable);
  }
  Add(labels, kMetaSystemdSlice, SliceOf(where.path));
  Add(labels, kMetaSystemdUnit, where.identity.systemd_unit);
}

// What its environment names it, where no annotation does; else "".
std::string_view OtelServiceOf(const Labels& labels, const ContainerMetadata* container) {
  if (container != nullptr && !AnnotatedService(*container).empty()) return {};
  return ValueIn(labels, kMetaProcessOtelServiceName);
}

// Whether its name is the program's, not its cgroup's.
bool IsNamedByProgram(const Labels& labels, const ContainerMetadata* container) {
  if (!OtelServiceOf(labels, container).empty()) return true;
  if (container != nullptr) return ServiceOfContainer(*container).empty();
  return ServiceOfUnit(ValueIn(labels, kSystemdUnitLabel)).empty();
}

bool DropsCgroup(const Relabeling& rules, size_t rule, const Labels& labels,
                 const ContainerMetadata* container) {
  std::vector<std::string_view> of_process = {kMetaProcessComm, kMetaProcessExecutable,
                                              kMetaProcessPid, kMetaProcessOtelServiceName};
  if (IsNamedByProgram(labels, container)) of_process.push_back(kServiceNameLabel);
  return rules.DecidesWithout(rule, of_process);
}

// The name of the program, if it was captured.
std::string_view ProgramOf(const Labels& labels) {
  const std::string_view comm = ValueIn(labels, kMetaProcessComm);
  return comm.empty() ? ValueIn(labels, kServiceNameLabel) : comm;
}

}  // namespace

std::string_view ValueIn(const Labels& labels, std::string_view name) {
  const auto at = std::ranges::find(labels, name, &Labels::value_type::first);
  return at == labels.end() ? std::string_view() : std::string_view(at->second);
}

Labels LabelsOf(const SeenProcess& process, MetaLabels meta) {
  const Whereabouts where = WhereaboutsOf(process);
  Labels labels;  // by name
  if (meta == MetaLabels::kAll) AddMeta(labels, where, process);
  if (meta == MetaLabels::kContainer && !where.identity.container_id.empty()) {
    AddContainerMeta(labels, where);
  }
  AddDefaults(labels, where.identity, process.comm);
  return labels;
}

Labels LabelsOfName(std::string_view name, MetaLabels meta) {
  Labels labels;
  if (meta == MetaLabels::kAll) Add(labels, kMetaProcessComm, name);
  AddDefaults(labels, {}, name);
  return labels;
}

Labels WithPid(Labels labels, Pid pid) {
  labels.emplace_back(kMetaProcessPid, fmt::to_string(pid.value()));
  std::ranges::sort(labels);
  return labels;
}

Labels WithOtelServiceName(Labels labels, std::string_view service) {
  std::erase_if(labels, [](const auto& l) { return l.first == kMetaProcessOtelServiceName; });
  Add(labels, kMetaProcessOtelServiceName, service);
  std::ranges::sort(labels);
  return labels;
}

Labels BeforeRules(const Labels& labels, const ContainerMetadata* container) {
  std::map<std::string_view, std::string_view> by_name(labels.begin(), labels.end());
  Labels names;
  Labels meta;
  if (container != nullptr) {
    by_name.erase(kContainerIdLabel);
    names = LabelsOfContainer(*container, ValueIn(labels, kServiceNameLabel));
    meta = MetaLabelsOfContainer(*container);
  }
  for (const Labels* const added : {&names, &meta}) {
    for (const auto& [name, value] : *added) by_name.insert_or_assign(name, value);
  }
  if (const std::string_view service = OtelServiceOf(labels, container); !service.empty()) {
    by_name.insert_or_assign(kServiceNameLabel, service);
  }
  return {by_name.begin(), by_name.end()};
}

bool OptsOut(const ContainerMetadata& container) {
  const auto at = container.pod->annotations.find("pyrometer.io/profile");
  return at != container.pod->annotations.end() && at->second == "false";
}

RuledLabels ApplyRules(const Relabeling& rules, const Labels& labels,
                       const ContainerMetadata* container) {
  if (container != nullptr && OptsOut(*container)) {
    return {.labels = std::nullopt, .drops_cgroup = true};
  }
  Relabeled result = rules.Apply(BeforeRules(labels, container));
  if (result.dropped_by) {
    return {.labels = std::nullopt,
            .drops_cgroup = DropsCgroup(rules, *result.dropped_by, labels, container)};
  }
  if (ValueIn(result.labels, kServiceNameLabel).empty()) {
    Add(result.labels, kServiceNameLabel, ProgramOf(labels));
    std::ranges::sort(result.labels);
  }
  return {.labels = std::move(result.labels)};
}

}  // namespace pyrometer
