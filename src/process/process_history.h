// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/procfs.h"
#include "process/address_space_sink.h"
#include "process/object_inspector.h"
#include "process/object_table.h"
#include "process/process_counters.h"
#include "process/process_directory.h"
#include "process/process_event.h"
#include "process/process_table.h"
#include "process/program_mappings.h"
#include "process/task_record.h"
#include "process/window_resolver.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// What ProcessTracker knows, without its thread and its event stream: it takes events as values
// and a /proc tree as it is, so recordings can be replayed into it. Thread-compatible.
class ProcessHistory {
 public:
  struct Options {
    Procfs procfs;
    std::chrono::nanoseconds keep = std::chrono::seconds(20);
    size_t held_files = 1024;
  };

  // `inspector` and `sink` must outlive the history.
  ProcessHistory(Options options, ObjectInspector& inspector, AddressSpaceSink& sink);

  // Reads all of /proc; `tasks` was read shortly before. Afterwards Apply() must be given every
  // event since before `tasks` was read. Errors: /proc cannot be listed.
  Result<void> Scan(std::span<const TaskRecord> tasks);

  // A burst of events, in order of time. Publishes each process that changed, once.
  void Apply(std::span<const ProcessEvent> events);

  // The following are as in ProcessTracker, of the events that were applied.
  Window Resolve(Window window);
  void CloseUnusedFiles(MonotonicTime named);
  void Recheck(const ProcessKey& key);
  std::optional<ProgramMappings> MappingsAt(const ProcessKey& key, ExecId exec, MonotonicTime when);
  std::optional<ObjectInfo> Object(ObjectId id) const;
  Result<UniqueFd> OpenObject(ObjectId id);
  Result<UniqueFd> OpenRootOf(ObjectId id);
  Result<UniqueFd> OpenPerfMap(const ProcessKey& process);
  bool HasEnded(const ProcessKey& process) const;
  std::vector<KernelSymbolEvent> TakeKernelSymbolEvents();
  ProcessCounters counters() const;
  size_t process_count() const { return processes_.living_count(); }

  // True once after records were lost: what is known may be wrong until the next Scan().
  bool TakeLost() { return std::exchange(lost_, false); }

 private:
  class Finder;
  struct OpenDirectory {
    Pid pid;
    MonotonicTime born;
    std::optional<ProcessDirectory> directory;  // nothing: the process is gone
  };

  void On(const MappingEvent& event);
  void On(const ForkEvent& event);
  void On(const ExitEvent& event);
  void On(const CommEvent& event);
  void On(const SymbolEvent& event);
  void On(const LostEvent& event);

  void AddScanned(const ScannedProcess& scanned, const ProcessDirectory& directory,
                  const TaskRecord* task);
  // A living process that no event told of.
  Process* Adopt(Pid pid);
  // ObjectId(0): anonymous memory.
  ObjectId Identify(const FileMapping& range, const MappedFile& file, const RootIdentity& root,
                    const ProcessDirectory* directory);
  ObjectId Identify(Process& process, const MappingEvent& event);
  // What is known at `address` if `object` is the same file; `known` may be null.
  ObjectId AsKnown(ObjectId object, Address address, const Process* known) const;
  std::span<const Segment> SegmentsOf(ObjectId object) const;
  std::vector<ObjectMapping> ToObjects(const FileMapping& range, ObjectId object) const;
  // What /proc shows of a process of which `known` was known; may be null.
  std::vector<CodeMapping> ToCode(std::span<const ProcMapping> mappings, const RootIdentity& root,
                                  const ProcessDirectory& directory, const Process* known);
  // Null if the process is gone. Valid until the next call, or the end of the burst.
  const ProcessDirectory* DirectoryOf(Process& process);
  void LearnRoot(Process& process);
  // `directory` may be null: then it is looked for.
  void NoteAnonymousCode(Process& process, const ProcessDirectory* directory);
  // Withdraws the process if it cannot be published.
  void Publish(Pid pid);
  void PublishChanged();
  void Withdraw(Pid pid);
  void Forget(MonotonicTime horizon);

  const Options options_;
  const uint64_t page_size_;
  AddressSpaceSink& sink_;
  ObjectTable objects_;
  ProcessTable processes_;
  absl::flat_hash_set<Pid> changed_;                  // to publish at the end of the burst
  absl::flat_hash_map<RootIdentity, Pid> witnesses_;  // somebody living with that root
  std::vector<std::weak_ptr<PerfMapDirectory>> perf_maps_;
  std::optional<OpenDirectory> open_;  // the last one, for a burst often tells of one process
  std::vector<KernelSymbolEvent> symbols_;
  ProcessCounters counters_;
  ResolveTally resolved_;
  MonotonicTime files_looked_through_;  // the `named` of that call
  bool lost_ = false;
};

}  // namespace pyrometer
