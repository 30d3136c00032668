// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/environment_reader.h"
#include "agent/label_outcomes.h"
#include "agent/process_facts.h"
#include "agent/shared_labels.h"
#include "metadata/container_directory.h"
#include "metadata/relabel.h"
#include "process/process_observer.h"
#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Labels each process with what people look for it by:
//
//   service_name  the systemd service it is part of, without ".service"; of others the name of the
//                 program; "kernel" for the kernel's threads, which have hundreds of names, and for
//                 interrupts of idle CPUs
//   systemd_unit  the same service, or for sessions and scopes the slice they are in
//   container_id  of the innermost container that it is in; then without systemd_unit
//
// The last two where there are such. In the place of container_id come the names of Kubernetes
// where the container is known (LabelsOfContainer()), and to these the rules (relabel_configs)
// apply, together with meta labels, which only they see. Each label set is a profile of its own for
// every server, so their number is bounded: beyond `sets` the others are one, "other".
//
// A service that the process's environment names for OpenTelemetry is found out a moment after the
// process was seen; until then it has its parent's.
//
// What is captured of a process while it lives are the labels from before that. What becomes of
// them is decided when a window is resolved, for each distinct set of them, or for each process if
// the rules ask for its pid. So changed rules and names hold for every process from the next window
// on, those that have ended included, and a new process costs a look into a table. A process that
// is dropped has its samples taken out of the window before anything is named. Samples of a
// container that is being asked for go on with what was captured, for Settle().
//
// OnProcess() and the others of ProcessObserver are called one at a time, the rest from any thread.
class ProcessLabels final : public ProcessObserver {
 public:
  static constexpr std::string_view kKernel = "kernel";
  static constexpr std::string_view kOther = "other";

  struct Limits {
    size_t sets = 1000;    // that samples carry
    size_t inputs = 4000;  // captured; with rules up to some 2 KB each
  };
  // Both may be null: then nobody is asked for containers, or no environment is read. They outlive
  // this.
  struct Sources {
    ContainerDirectory* containers = nullptr;
    EnvironmentReader* environments = nullptr;
  };
  ProcessLabels(const Limits& limits, const Sources& sources);
  explicit ProcessLabels(const Limits& limits) : ProcessLabels(limits, Sources()) {}
  ProcessLabels() : ProcessLabels(Limits{}) {}

  // From the next window on, also for processes that are known. True if they have to be seen again
  // for that (ProcessKnowledge::ShowAgain), as nothing was captured for rules before.
  bool SetRules(Relabeling rules);

  // What takes the place of `captured`, which a process has by OnProcess(), now that its
  // environment is known to name this service ("" for none); null if nothing does. For
  // ProcessKnowledge::ReplaceLabels().
  LabelSet OnService(const LabelSet& captured, const std::string& service);

  // What becomes of sets that OnSamples() has left on samples since their container was asked for:
  // nothing where its names are not known (never if it `gives_up`), null of those that are dropped.
  // Others stay as they are.
  std::vector<std::optional<LabelSet>> Settle(std::span<const LabelSet> sets,
                                              LabelOutcomes::Patience patience);
  // The same for the samples of a profile, at once; takes out those that are dropped.
  void SettleNow(Profile& profile);

  // Ticks that OnSamples() has left without the names of their container, which nobody knew.
  uint64_t nameless_samples() const;

  // Paths in version 2's hierarchy of cgroups whose processes are all dropped, for no other reason
  // than their cgroup; none that holds, or has below it, a process that is not dropped for such a
  // reason. Sorted. Nothing if there can be no others than at the last call.
  std::optional<std::vector<std::string>> TakeDroppedCgroups();

  LabelSet OnProcess(const SeenProcess& process) override;
  LabelSet OfUnknown(Pid pid, std::string_view comm) override;
  void OnSamples(std::vector<Sample>& samples) override;

 private:
  bool IsKernelThread(const SeenProcess& process) const;
  MetaLabels meta() const;
  LabelSet Captured(Labels labels);
  void ForgetUnborne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ContainerDirectory* const containers_;
  EnvironmentReader* const environments_;
  const LabelSet kernel_;
  const LabelSet other_;
  // There are rules, or were: then processes have meta labels.
  std::atomic<bool> relabels_ = false;

  mutable absl::Mutex mutex_;
  uint64_t nameless_samples_ ABSL_GUARDED_BY(mutex_) = 0;
  bool asks_for_pid_ ABSL_GUARDED_BY(mutex_) = false;
  // What may change the dropped cgroups.
  struct Changes {
    uint64_t inputs = 0;
    uint64_t containers = 0;

    bool operator==(const Changes&) const = default;
  };
  // Those that TakeDroppedCgroups() has seen; nothing: not under these rules.
  std::optional<Changes> seen_changes_ ABSL_GUARDED_BY(mutex_);
  SharedLabels inputs_ ABSL_GUARDED_BY(mutex_);
  LabelOutcomes outcomes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
