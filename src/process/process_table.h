// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/address_space.h"
#include "process/boot_clock.h"
#include "process/perf_map_directory.h"
#include "process/proc_scan.h"
#include "process/process_directory.h"
#include "process/process_event.h"
#include "process/task_record.h"
#include "process/token_bucket.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"

namespace pyrometer {

inline constexpr MonotonicTime kForever{UINT64_MAX};
// Executable mappings of one program that are kept; MongoDB or a browser has a few hundred.
inline constexpr size_t kMaxProgramMappings = 8192;

// What a process runs from one exec to the next.
struct Program {
  std::optional<ExecId> exec;  // nothing: never learnt
  MonotonicTime since;         // 0: before anybody looked
  std::string comm;
  AddressSpace space;
  bool complete = false;     // all its executable mappings are known
  bool over_budget = false;  // it has more than are kept; new ones are passed over
  // So often, and at most so much, anonymous code was seen to come or go without a report.
  uint32_t drifts = 0;
  uint64_t drift_pages = 0;
  Address code;  // in the executable; learnt with drift_pages
  RootIdentity root;
  bool root_is_own = false;                  // else inherited
  absl::flat_hash_set<ObjectId> shown = {};  // to the observer
  // Of a program that maps one file after another each publish has all of them once more. ld.so's
  // first ones go out at once, since most programs end soon.
  TokenBucket publishes{4, std::chrono::milliseconds(50)};
};

// One life of a pid, from fork to the exit of the last thread.
struct Process {
  ProcessKey key;
  bool start_is_exact = false;  // else derived from the fork's report: never early, seldom late
  bool kernel_thread = false;
  MonotonicTime born;
  MonotonicTime ended = kForever;
  MonotonicTime scanned_at;      // events up to then are in its mappings already
  MonotonicTime exec_learnt_at;  // and in its exec id
  absl::flat_hash_set<Tid> threads;
  LabelSet labels;     // at first its parent's
  bool shown = false;  // to the observer, as what it runs now
  // Whose labels it has yet to inherit: its parent, which was not shown either when it was born.
  std::optional<Pid> unshown_parent;
  std::vector<Program> programs;    // oldest first; at least one
  bool has_anonymous_code = false;  // code that is in no file
  // Held for its windows after its end, if it had such code and there was room.
  std::shared_ptr<const PerfMapDirectory> perf_map;
  // Limits rechecks of its mappings, each of which costs up to 0.1 to 1 ms.
  TokenBucket rechecks{20, std::chrono::seconds(1)};

  Program& program() { return programs.back(); }
  const Program& program() const { return programs.back(); }
  bool alive() const { return ended == kForever; }
  // True if `start` can be this process's. One that was derived from a fork record may be a tick
  // late; later still only if a virtual CPU stood still in the middle of the fork, and then the
  // kernel side does not know the process until its first sample tells its true start.
  bool StartedAt(StartTime start) const;
};

// Every process that lives or ended recently. Pure bookkeeping: the caller reads /proc. Events must
// come in order of time; those older than the scan of their process are already in it.
// Thread-compatible.
class ProcessTable {
 public:
  // How fork times become start times.
  void set_clock(const BootClock& clock) { clock_ = clock; }

  // Returns the process that was born or whose program became known; null for a mere thread.
  Process* Apply(const ForkEvent& event);
  // True if that was the process's last thread.
  bool Apply(const ExitEvent& event);
  // The process if it now runs another program; null if only its name changed.
  Process* Apply(const CommEvent& event);

  // Adds what /proc says of a process, and the record of one of its tasks, read before, if there is
  // one. Keeps what is already known where it agrees. Ignores the record of another process that
  // had this pid.
  Process& Add(const ScannedProcess& scanned, const std::vector<CodeMapping>& mappings,
               const TaskRecord* task);

  // Ends living processes that were born before `when` and for which `seen` is false.
  std::vector<Pid> EndMissing(MonotonicTime when, const std::function<bool(Pid)>& seen);

  // Null if no such process lives.
  Process* Living(Pid pid);
  // The process whatever it runs, born by `when`; null if it is unknown or forgotten.
  const Process* Find(const ProcessKey& key, MonotonicTime when = kForever) const;
  Process* Find(const ProcessKey& key, MonotonicTime when = kForever);
  // Who had that pid at that moment; null if it is unknown or forgotten.
  const Process* At(Pid pid, MonotonicTime when) const;
  // What `process`, born by `when`, ran as its program `exec`, or then if exec ids were not known.
  const Program* Find(const ProcessKey& process, ExecId exec, MonotonicTime when) const;

  void ForEachLiving(const std::function<void(Process&)>& visit);
  // Those that ended, too.
  void ForEach(const std::function<void(Process&)>& visit);

  // Learns the exact start of a process from a sample taken at `when`. True if it differs from what
  // was derived for the living process of this pid.
  bool LearnStart(const ProcessKey& key, MonotonicTime when);

  // Drops what no sample taken at or after `horizon` can need.
  void Forget(MonotonicTime horizon);

  // All objects that samples of remembered processes can lie in.
  absl::flat_hash_set<ObjectId> Objects() const;

  size_t living_count() const { return living_; }

 private:
  using Lives = std::vector<std::unique_ptr<Process>>;  // of one pid, oldest first
  struct Grave {
    MonotonicTime ended;
    Pid pid;
  };

  Process& Bear(Pid pid, MonotonicTime when);
  void End(Process& process, MonotonicTime when);
  void ForgetOldest();

  BootClock clock_;
  absl::flat_hash_map<Pid, Lives> processes_;
  std::deque<Grave> graves_;  // in the order of their ends
  size_t living_ = 0;
};

}  // namespace pyrometer
