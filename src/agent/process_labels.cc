// SPDX-License-Identifier: Apache-2.0
#include "agent/process_labels.h"

#include <algorithm>
#include <set>
#include <utility>

#include "process/process_directory.h"

namespace pyrometer {
namespace {

constexpr Pid kIdleTask{0};
constexpr Pid kThreadDaemon{2};  // kthreadd, the parent of all kernel threads

LabelSet Named(std::string_view name) {
  return std::make_shared<const Labels>(LabelsOfName(name, MetaLabels::kWithout));
}

// What a dropped sample has until it is taken out.
const LabelSet& Unwanted() {
  static const LabelSet kUnwanted = std::make_shared<const Labels>();
  return kUnwanted;
}

// True if one of `paths`, sorted, is `cgroup` or below it.
bool AnyWithin(const std::set<std::string, std::less<>>& paths, const std::string& cgroup) {
  if (paths.contains(cgroup)) return true;
  const std::string prefix = cgroup + "/";
  const auto below = paths.lower_bound(prefix);
  return below != paths.end() && below->starts_with(prefix);
}

// The root has every other cgroup below it, and a path with ".." leads out of what we see.
bool MayBeDenied(std::string_view path) {
  return path.size() > 1 && path.starts_with('/') && path.find("/..") == std::string_view::npos;
}

}  // namespace

LabelSet SharedLabels::Share(Labels labels) {
  const auto known = known_.find(labels);
  if (known != known_.end()) {
    if (LabelSet shared = known->second.lock()) return shared;
  } else if (IsFull()) {
    Forget();
    if (IsFull()) return other_;
  }
  ++changes_;
  auto shared = std::make_shared<const Labels>(labels);
  known_.insert_or_assign(std::move(labels), shared);
  return shared;
}

void SharedLabels::Forget() {
  changes_ += std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
}

std::vector<LabelSet> SharedLabels::Living() const {
  std::vector<LabelSet> living;
  for (const auto& [labels, set] : known_) {
    if (LabelSet shared = set.lock()) living.push_back(std::move(shared));
  }
  return living;
}

ProcessLabels::ProcessLabels(const Limits& limits, ContainerDirectory* containers)
    : containers_(containers),
      kernel_(Named(kKernel)),
      other_(Named(kOther)),
      sets_(limits.sets, other_),
      inputs_(limits.inputs, other_) {}

bool ProcessLabels::SetRules(Relabeling rules) {
  const absl::MutexLock lock(&mutex_);
  const bool is_first = !rules.empty() && !relabels_;
  if (is_first) relabels_ = true;
  asks_for_pid_ = rules.Reads(kMetaProcessPid);
  rules_ = std::move(rules);
  outcomes_.clear();
  seen_changes_.reset();
  return is_first;
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
  Labels labels = LabelsOf(process, meta());
  if (containers_ != nullptr) {
    const std::string container(ValueIn(labels, kContainerIdLabel));
    if (!container.empty()) containers_->Find(container);
  }
  return Captured(std::move(labels));
}

LabelSet ProcessLabels::OfUnknown(Pid pid, std::string_view comm) {
  if (pid == kIdleTask) return kernel_;
  return comm.empty() ? other_ : Captured(LabelsOfName(comm, meta()));
}

LabelSet ProcessLabels::Captured(Labels labels) {
  const absl::MutexLock lock(&mutex_);
  return (relabels_ ? inputs_ : sets_).Share(std::move(labels));
}

void ProcessLabels::OnSamples(std::vector<Sample>& samples) {
  if (!relabels_) return;
  const absl::MutexLock lock(&mutex_);
  absl::flat_hash_map<std::pair<const Labels*, Pid>, LabelSet> by_pid;
  for (Sample& sample : samples) {
    if (sample.labels == nullptr) continue;
    if (asks_for_pid_) {
      const Pid pid = sample.process.pid;
      const auto [at, is_new] = by_pid.try_emplace(std::pair(sample.labels.get(), pid));
      if (is_new) at->second = Ruled(WithPid(*sample.labels, pid));
      sample.labels = at->second;
    } else {
      sample.labels = OutcomeOf(sample.labels).labels;
    }
    if (sample.labels == nullptr) sample.labels = Unwanted();
  }
  std::erase_if(samples, [](const Sample& sample) { return sample.labels == Unwanted(); });
  ForgetUnborne();
}

LabelSet ProcessLabels::Ruled(const Labels& labels) {
  std::optional<Labels> ruled = ApplyRules(rules_, labels).labels;
  return ruled ? sets_.Share(*std::move(ruled)) : nullptr;
}

const ProcessLabels::Outcome& ProcessLabels::OutcomeOf(const LabelSet& labels) {
  const auto [at, is_new] = outcomes_.try_emplace(labels.get());
  if (is_new || at->second.of.expired()) {
    RuledLabels ruled = ApplyRules(rules_, *labels);
    at->second = {.of = labels,
                  .labels = ruled.labels ? sets_.Share(*std::move(ruled.labels)) : nullptr,
                  .drops_cgroup = ruled.drops_cgroup};
  }
  return at->second;
}

void ProcessLabels::ForgetUnborne() {
  absl::erase_if(outcomes_, [](const auto& outcome) { return outcome.second.of.expired(); });
  inputs_.Forget();
}

std::optional<std::vector<std::string>> ProcessLabels::TakeDroppedCgroups() {
  if (!relabels_) return std::nullopt;
  const absl::MutexLock lock(&mutex_);
  ForgetUnborne();
  if (seen_changes_ == inputs_.changes()) return std::nullopt;
  seen_changes_ = inputs_.changes();
  // Who is not told apart from others may be in any cgroup.
  if (rules_.empty() || inputs_.IsFull()) return std::vector<std::string>();
  std::set<std::string, std::less<>> dropped;
  std::set<std::string, std::less<>> others;
  for (const LabelSet& labels : inputs_.Living()) {
    const std::string_view path = ValueIn(*labels, kMetaCgroupPath);
    const std::string_view v2_path = ValueIn(*labels, kMetaCgroupV2Path);
    // Where another cgroup tells whose a process is, its cgroup of version 2 says nothing of it.
    const bool is_dropped = v2_path.empty() && OutcomeOf(labels).drops_cgroup;
    (is_dropped ? dropped : others).emplace(v2_path.empty() ? path : v2_path);
  }
  std::vector<std::string> cgroups;
  for (const std::string& path : dropped) {
    if (MayBeDenied(path) && !AnyWithin(others, path)) cgroups.push_back(path);
  }
  return cgroups;
}

void ProcessLabels::OnMapping(const ProcessKey& /*process*/, const ObjectMapping& /*mapping*/,
                              const ObjectInfo& /*object*/) {}

}  // namespace pyrometer
