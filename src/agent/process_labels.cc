// SPDX-License-Identifier: Apache-2.0
#include "agent/process_labels.h"

#include <memory>

#include "base/printable.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

constexpr Pid kIdleTask{0};
constexpr Pid kThreadDaemon{2};  // kthreadd, the parent of all kernel threads

}  // namespace

LabelSet ProcessLabels::Make(std::string_view name) {
  return std::make_shared<const Labels>(Labels{{std::string(kName), Printable(name)}});
}

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
  return Of(process.comm);
}

LabelSet ProcessLabels::OfUnknown(Pid pid, std::string_view comm) {
  if (pid == kIdleTask) return kernel_;
  return comm.empty() ? other_ : Of(comm);
}

LabelSet ProcessLabels::Of(std::string_view name) {
  const auto known = known_.find(name);
  if (known != known_.end()) {
    if (LabelSet labels = known->second.lock()) return labels;
    LabelSet labels = Make(name);
    known->second = labels;
    return labels;
  }
  if (known_.size() >= most_names_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    if (known_.size() >= most_names_) return other_;
  }
  LabelSet labels = Make(name);
  known_.emplace(name, labels);
  return labels;
}

void ProcessLabels::OnMapping(const ProcessKey& /*process*/, const ObjectMapping& /*mapping*/,
                              const ObjectInfo& /*object*/) {}

}  // namespace pyrometer
