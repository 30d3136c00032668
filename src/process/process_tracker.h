// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/procfs.h"
#include "process/address_space_sink.h"
#include "process/object_inspector.h"
#include "process/process_knowledge.h"
#include "process/task_record.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Knows every process of the machine, now and in the recent past: what it had mapped where, and
// which file that was. A thread of its own applies kernel events as they come; whoever asks for a
// later moment applies them itself. Thread-safe: every method may be called from any thread.
class ProcessTracker final : public ProcessKnowledge {
 public:
  struct Options {
    Procfs procfs;
    // Event buffer per CPU, rounded up to a power of two of pages; smaller if the kernel refuses.
    size_t ring_bytes = size_t{512} << 10;
    // How long an ended process and a replaced mapping stay known: two windows.
    std::chrono::nanoseconds keep = std::chrono::seconds(20);
    // Files kept open so that they stay readable when deleted or when their process is gone.
    // 0: a third of RLIMIT_NOFILE, at most 2048. As many again may be open for windows under way.
    size_t held_files = 0;
  };
  using TaskSnapshot = std::function<Result<std::vector<TaskRecord>>()>;

  // Opens the event stream, then scans /proc; on return every process is known and published.
  // `inspector`, `sink` and what `snapshot` refers to must outlive the tracker. If `snapshot`
  // is empty or fails, exec ids stay unknown: then nothing is published until a process execs.
  // Errors: kPermission or kUnsupported if the kernel refuses the events.
  static Result<std::unique_ptr<ProcessTracker>> Start(Options options, ObjectInspector& inspector,
                                                       AddressSpaceSink& sink,
                                                       TaskSnapshot snapshot);
  ~ProcessTracker() override;
  ProcessTracker(const ProcessTracker&) = delete;
  ProcessTracker& operator=(const ProcessTracker&) = delete;

  ResolvedWindow Resolve(Window window) override;
  std::optional<ProgramMappings> MappingsAt(const ProcessKey& process, ExecId exec,
                                            MonotonicTime when) override;
  void Recheck(const ProcessKey& process) override;
  std::optional<ObjectInfo> Object(ObjectId id) const override;
  Result<UniqueFd> OpenObject(ObjectId id) override;
  Result<UniqueFd> OpenRootOf(ObjectId id) override;
  ProcessCounters counters() const override;

 private:
  class State;
  explicit ProcessTracker(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
