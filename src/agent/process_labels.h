// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "agent/process_facts.h"
#include "metadata/container_directory.h"
#include "metadata/relabel.h"
#include "process/process_observer.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// Label sets, each of which is there once as long as somebody bears it, and at most so many.
class SharedLabels {
 public:
  // `other` stands for all those for which there is no room.
  SharedLabels(size_t most, LabelSet other) : most_(most), other_(std::move(other)) {}

  LabelSet Share(Labels labels);
  // Forgets sets that nobody bears any more.
  void Forget();
  bool IsFull() const { return known_.size() >= most_; }
  std::vector<LabelSet> Living() const;
  // How often a set was added or forgotten.
  uint64_t changes() const { return changes_; }

 private:
  const size_t most_;
  const LabelSet other_;
  std::map<Labels, std::weak_ptr<const Labels>> known_;
  uint64_t changes_ = 0;
};

// Labels each process with what people look for it by:
//
//   service_name  the systemd service it is part of, without ".service"; of others the name of the
//                 program; "kernel" for the kernel's threads, which have hundreds of names, and for
//                 interrupts of idle CPUs
//   systemd_unit  the same service, or for sessions and scopes the slice they are in
//   container_id  of the innermost container that it is in; then without systemd_unit
//
// The last two where there are such. With rules (relabel_configs) these are only where the rules
// begin, together with meta labels, which see. Each label set is a profile of its own for every
// server, so their number is bounded: beyond `sets` the others are one, "other".
//
// What is captured of a process while it lives are the labels from before the rules. The rules
// apply to them when a window is resolved, once for each distinct set of labels, as long as the
// rules are the same, or for each process if they ask for its pid. So changed rules hold for every
// process from the next window on, those that have ended included, and a new process costs a look
// into a table. A process that the rules drop has its samples taken out of the window before
// anything is named.
//
// Those of containers become the names of Kubernetes when profiles are made, after the rules, see
// late_labels.h; here they are looked up early, so that they are known by then.
//
// OnProcess() and the others of ProcessObserver are called with the tracker's lock held, the rest
// from any thread.
class ProcessLabels final : public ProcessObserver {
 public:
  static constexpr std::string_view kKernel = "kernel";
  static constexpr std::string_view kOther = "other";

  struct Limits {
    size_t sets = 1000;    // that samples carry
    size_t inputs = 4000;  // before the rules, if there are rules; up to some 2 KB each
  };
  // `containers` may be null, and outlives this.
  explicit ProcessLabels(const Limits& limits, ContainerDirectory* containers = nullptr);
  ProcessLabels() : ProcessLabels(Limits{}) {}

  // From the next window on, also for processes that are known. True if they have to be seen again
  // for that (ProcessKnowledge::ShowAgain), as nothing was captured for rules before.
  bool SetRules(Relabeling rules);

  // Paths in version 2's hierarchy of cgroups whose processes the rules all drop, for no other
  // reason than their cgroup; none that holds, or has below it, a process that is not dropped for
  // such a reason. Sorted. Nothing if there can be no others than at the last call.
  std::optional<std::vector<std::string>> TakeDroppedCgroups();

  LabelSet OnProcess(const SeenProcess& process) override;
  LabelSet OfUnknown(Pid pid, std::string_view comm) override;
  void OnSamples(std::vector<Sample>& samples) override;
  void OnMapping(const ProcessKey& process, const ObjectMapping& mapping,
                 const ObjectInfo& object) override;

 private:
  // What the rules make of a set of labels.
  struct Outcome {
    std::weak_ptr<const Labels> of;
    LabelSet labels;  // null: they are dropped
    bool drops_cgroup = false;
  };

  bool IsKernelThread(const SeenProcess& process) const;
  MetaLabels meta() const { return relabels_ ? MetaLabels::kWith : MetaLabels::kWithout; }
  LabelSet Captured(Labels labels);
  const Outcome& OutcomeOf(const LabelSet& labels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LabelSet Ruled(const Labels& labels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetUnborne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ContainerDirectory* const containers_;
  const LabelSet kernel_;
  const LabelSet other_;
  // There are rules, or were: then processes have meta labels, and their samples do not.
  std::atomic<bool> relabels_ = false;

  absl::Mutex mutex_;
  Relabeling rules_ ABSL_GUARDED_BY(mutex_);
  bool asks_for_pid_ ABSL_GUARDED_BY(mutex_) = false;
  // Changes of inputs_ that TakeDroppedCgroups() has seen; nothing: not under these rules.
  std::optional<uint64_t> seen_changes_ ABSL_GUARDED_BY(mutex_);
  SharedLabels sets_ ABSL_GUARDED_BY(mutex_);
  SharedLabels inputs_ ABSL_GUARDED_BY(mutex_);
  // By the set they are about. That may be gone, and another be where it was: see Outcome::of.
  absl::flat_hash_map<const Labels*, Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
