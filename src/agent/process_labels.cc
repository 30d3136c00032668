// SPDX-License-Identifier: Apache-2.0
#include "agent/process_labels.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/printable.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

constexpr Pid kIdleTask{0};
constexpr Pid kThreadDaemon{2};  // kthreadd, the parent of all kernel threads

void Add(Labels& labels, std::string_view name, std::string_view value) {
  if (!value.empty()) labels.emplace_back(name, Printable(value));
}

// `program` names what no systemd service does.
Labels LabelsOf(const CgroupIdentity& group, std::string_view program) {
  const std::string_view service = ServiceOfUnit(group.systemd_unit);
  Labels labels;  // by name
  Add(labels, ProcessLabels::kContainerId, group.container_id);
  Add(labels, ProcessLabels::kServiceName, service.empty() ? program : service);
  Add(labels, ProcessLabels::kSystemdUnit, group.systemd_unit);
  return labels;
}

std::string ValueIn(const LabelSet& labels, std::string_view name) {
  if (labels == nullptr) return "";
  const auto at = std::ranges::find(*labels, name, &Labels::value_type::first);
  return at == labels->end() ? "" : at->second;
}

// A process that can no longer be asked is where its parent was.
CgroupIdentity GroupOf(const SeenProcess& process) {
  if (process.directory != nullptr) {
    if (const Result<std::string> text = process.directory->Cgroups()) {
      return IdentityOf(TellingCgroup(*text));
    }
  }
  return {.container_id = ValueIn(process.inherited, ProcessLabels::kContainerId),
          .systemd_unit = ValueIn(process.inherited, ProcessLabels::kSystemdUnit)};
}

LabelSet Named(std::string_view name) {
  return std::make_shared<const Labels>(LabelsOf({}, name));
}

}  // namespace

ProcessLabels::ProcessLabels(size_t most_sets, ContainerDirectory* containers)
    : most_sets_(most_sets),
      containers_(containers),
      kernel_(Named(kKernel)),
      other_(Named(kOther)) {}

// Asked only where it can be, since asking reads a file of /proc: of those that were there before
// us, and of children of kernel threads, which are such until they exec a program.
bool ProcessLabels::IsKernelThread(const SeenProcess& process) const {
  if (process.key.pid == kThreadDaemon) return true;
  const bool of_kernel_thread = process.inherited == kernel_;
  if (process.inherited != nullptr && !of_kernel_thread) return false;
  if (process.directory == nullptr) return of_kernel_thread;
  const Result<ProcStat> stat = process.directory->Stat();
  return stat ? stat->kernel_thread : of_kernel_thread;
}

LabelSet ProcessLabels::OnProcess(const SeenProcess& process) {
  if (IsKernelThread(process)) return kernel_;
  if (process.comm.empty()) return process.inherited != nullptr ? process.inherited : other_;
  const CgroupIdentity group = GroupOf(process);
  if (containers_ != nullptr && !group.container_id.empty()) containers_->Find(group.container_id);
  return Shared(LabelsOf(group, process.comm));
}

LabelSet ProcessLabels::OfUnknown(Pid pid, std::string_view comm) {
  if (pid == kIdleTask) return kernel_;
  return comm.empty() ? other_ : Shared(LabelsOf({}, comm));
}

LabelSet ProcessLabels::Shared(Labels labels) {
  const auto known = known_.find(labels);
  if (known != known_.end()) {
    if (LabelSet shared = known->second.lock()) return shared;
  } else if (known_.size() >= most_sets_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    if (known_.size() >= most_sets_) return other_;
  }
  auto shared = std::make_shared<const Labels>(labels);
  known_.insert_or_assign(std::move(labels), shared);
  return shared;
}

void ProcessLabels::OnMapping(const ProcessKey& /*process*/, const ObjectMapping& /*mapping*/,
                              const ObjectInfo& /*object*/) {}

}  // namespace pyrometer
