// SPDX-License-Identifier: Apache-2.0
#include "agent/process_labels.h"

#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

constexpr Pid kIdleTask{0};
constexpr Pid kThreadDaemon{2};  // kthreadd, the parent of all kernel threads

LabelSet Named(std::string_view name) {
  return std::make_shared<const Labels>(LabelsOfName(name, MetaLabels::kNone));
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

ProcessLabels::ProcessLabels(const Limits& limits, const Sources& sources)
    : containers_(sources.containers),
      environments_(sources.environments),
      kernel_(Named(kKernel)),
      other_(Named(kOther)),
      inputs_(limits.inputs, other_),
      outcomes_(limits.sets, other_, sources.containers) {}

bool ProcessLabels::SetRules(Relabeling rules) {
  const absl::MutexLock lock(&mutex_);
  const bool is_first = !rules.empty() && !relabels_;
  if (is_first) relabels_ = true;
  asks_for_pid_ = rules.Reads(kMetaProcessPid);
  outcomes_.SetRules(std::move(rules));
  seen_changes_.reset();
  return is_first;
}

MetaLabels ProcessLabels::meta() const {
  if (relabels_) return MetaLabels::kAll;
  return containers_ != nullptr ? MetaLabels::kContainer : MetaLabels::kNone;
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
  if (environments_ == nullptr) return Captured(std::move(labels));
  if (process.inherited != nullptr) {
    const std::string_view service = ValueIn(*process.inherited, kMetaProcessOtelServiceName);
    if (!service.empty()) labels = WithOtelServiceName(std::move(labels), service);
  }
  LabelSet captured = Captured(std::move(labels));
  if (process.directory != nullptr) environments_->Want(process.key, captured);
  return captured;
}

LabelSet ProcessLabels::OnService(const LabelSet& captured, const std::string& service) {
  if (captured == other_) return nullptr;
  Labels labels = WithOtelServiceName(*captured, service);
  return labels == *captured ? nullptr : Captured(std::move(labels));
}

LabelSet ProcessLabels::OfUnknown(Pid pid, std::string_view comm) {
  if (pid == kIdleTask) return kernel_;
  return comm.empty() ? other_ : Captured(LabelsOfName(comm, meta()));
}

LabelSet ProcessLabels::Captured(Labels labels) {
  const absl::MutexLock lock(&mutex_);
  return inputs_.Share(std::move(labels));
}

void ProcessLabels::OnSamples(std::vector<Sample>& samples) {
  const absl::MutexLock lock(&mutex_);
  struct Settled {
    LabelSet labels;
    bool is_nameless = false;
  };
  // By what they were captured with, and by process if the rules ask for it.
  absl::flat_hash_map<std::pair<const Labels*, Pid>, Settled> settled;
  for (Sample& sample : samples) {
    if (sample.labels == nullptr) continue;
    const Pid pid = asks_for_pid_ ? sample.process.pid : Pid();
    const auto [at, is_new] = settled.try_emplace(std::pair(sample.labels.get(), pid));
    if (is_new) {
      const LabelSet captured = asks_for_pid_
                                    ? std::make_shared<const Labels>(WithPid(*sample.labels, pid))
                                    : sample.labels;
      const LabelOutcomes::Outcome outcome = outcomes_.Of(captured);
      at->second = {
          .labels = outcome.state == LabelOutcomes::State::kAwaited ? captured : outcome.labels,
          .is_nameless = outcome.is_nameless};
    }
    const Settled& its = at->second;
    if (its.is_nameless) nameless_samples_ += sample.count;
    sample.labels = its.labels != nullptr ? its.labels : Unwanted();
  }
  std::erase_if(samples, [](const Sample& sample) { return sample.labels == Unwanted(); });
  ForgetUnborne();
}

std::vector<std::optional<LabelSet>> ProcessLabels::Settle(std::span<const LabelSet> sets,
                                                           LabelOutcomes::Patience patience) {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::optional<LabelSet>> settled;
  settled.reserve(sets.size());
  for (const LabelSet& labels : sets) {
    // Only what rules see has meta labels.
    if (ValueIn(*labels, kMetaContainerId).empty()) {
      settled.emplace_back(labels);
      continue;
    }
    const LabelOutcomes::Outcome outcome = outcomes_.Of(labels, patience);
    // What nobody knows by now may become known while there is patience.
    const bool waits = outcome.state == LabelOutcomes::State::kAwaited ||
                       (outcome.is_nameless && patience == LabelOutcomes::Patience::kWaits);
    settled.push_back(waits ? std::nullopt : std::optional(outcome.labels));
  }
  return settled;
}

uint64_t ProcessLabels::nameless_samples() const {
  const absl::MutexLock lock(&mutex_);
  return nameless_samples_;
}

void ProcessLabels::SettleNow(Profile& profile) {
  absl::flat_hash_map<LabelSet, LabelSet> settled;
  for (ProfileSample& sample : profile.samples) {
    if (sample.labels == nullptr) continue;
    const auto [at, is_new] = settled.try_emplace(sample.labels);
    if (is_new) {
      at->second = *Settle(std::span(&sample.labels, 1), LabelOutcomes::Patience::kGivesUp)[0];
    }
    sample.labels = at->second != nullptr ? at->second : Unwanted();
  }
  std::erase_if(profile.samples,
                [](const ProfileSample& sample) { return sample.labels == Unwanted(); });
}

void ProcessLabels::ForgetUnborne() {
  outcomes_.Forget();
  inputs_.Forget();
}

std::optional<std::vector<std::string>> ProcessLabels::TakeDroppedCgroups() {
  if (meta() == MetaLabels::kNone) return std::nullopt;
  const absl::MutexLock lock(&mutex_);
  ForgetUnborne();
  const Changes changes{.inputs = inputs_.changes(),
                        .containers = containers_ != nullptr ? containers_->changes() : 0};
  if (seen_changes_ == changes) return std::nullopt;
  seen_changes_ = changes;
  // Who is not told apart from others may be in any cgroup.
  if (inputs_.IsFull()) return std::vector<std::string>();
  std::set<std::string, std::less<>> dropped;
  std::set<std::string, std::less<>> others;
  for (const LabelSet& labels : inputs_.Living()) {
    const std::string_view path = ValueIn(*labels, kMetaCgroupPath);
    const std::string_view v2_path = ValueIn(*labels, kMetaCgroupV2Path);
    // Where another cgroup tells whose a process is, its cgroup of version 2 says nothing of it.
    const bool is_dropped = v2_path.empty() && outcomes_.Of(labels).drops_cgroup;
    (is_dropped ? dropped : others).emplace(v2_path.empty() ? path : v2_path);
  }
  std::vector<std::string> cgroups;
  for (const std::string& path : dropped) {
    if (MayBeDenied(path) && !AnyWithin(others, path)) cgroups.push_back(path);
  }
  return cgroups;
}

}  // namespace pyrometer
