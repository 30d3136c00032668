// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "process/address_space.h"
#include "process/boot_clock.h"
#include "process/proc_scan.h"
#include "process/process.h"
#include "process/process_event.h"
#include "process/task_record.h"
#include "process/user_share.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Every process that lives or ended recently, except for those of users who have more than their
// share already. Pure bookkeeping: the caller reads /proc. Events must come in order of time; those
// older than the scan of their process are already in it. Thread-compatible.
class ProcessTable {
 public:
  explicit ProcessTable(const UserShares::Limits& limits = {}) : shares_(limits) {}

  // How fork times become start times.
  void set_clock(const BootClock& clock) { clock_ = clock; }

  // Returns the process that was born or whose program became known; null for a mere thread, and
  // for a process that is passed over.
  Process* Apply(const ForkEvent& event);
  // True if that was the process's last thread.
  bool Apply(const ExitEvent& event);
  // The process if it now runs another program; null if only its name changed.
  Process* Apply(const CommEvent& event);

  // Adds what /proc says of a process, and the record of one of its tasks, read before, if there is
  // one. Keeps what is already known where it agrees. Ignores the record of another process that
  // had this pid, and `mappings` if `scanned` has none.
  Process& Add(const ScannedProcess& scanned, const std::vector<CodeMapping>& mappings,
               const TaskRecord* task);

  // A living process that is not remembered, for its user has more than their share.
  struct PassedOver {
    std::shared_ptr<UserShare> share;
    std::optional<ExecId> exec;
    MonotonicTime since;  // execs up to then are in `exec` already
  };
  void PassOver(Pid pid, PassedOver process);
  // Null if the process is remembered, or unknown.
  const PassedOver* FindPassedOver(Pid pid) const;

  std::shared_ptr<UserShare> ShareOf(UserId user) { return shares_.Of(user); }
  const UserShares& shares() const { return shares_; }
  // It is known by now whose this living process is. True if that is another than was thought.
  bool SetUser(Process& process, UserId user);
  // Forgets the longest ended processes of a user who has more than their share. False if there are
  // still too many bytes: then no more of theirs is to be remembered.
  bool MakeRoom(UserShare& share);
  void HalveRecords();

  // Ends living processes that were born before `when` and for which `seen` is false.
  std::vector<Pid> EndMissing(MonotonicTime when, const std::function<bool(Pid)>& seen);

  // Null if no such process lives.
  Process* Living(Pid pid);
  // The process whatever it runs, born by `when`; null if it is unknown or forgotten.
  const Process* Find(const ProcessKey& key, MonotonicTime when = kForever) const;
  Process* Find(const ProcessKey& key, MonotonicTime when = kForever);
  // The life of that pid with that number; null if it is forgotten.
  Process* Life(Pid pid, uint64_t number);
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
  uint64_t forgotten_early() const { return forgotten_early_; }
  uint64_t passed_over() const { return passed_over_count_; }

 private:
  using Lives = std::vector<std::shared_ptr<Process>>;  // of one pid, oldest first

  Process& Bear(Pid pid, MonotonicTime when, const std::shared_ptr<UserShare>& share);
  // A program of that process that inherits nothing.
  static Program NewProgram(const Process& process, MonotonicTime since);
  // True if there is no room for it. `parent` may be null.
  bool PassOverChild(const ForkEvent& event, const Process* parent);
  void End(Process& process, MonotonicTime when);
  void ForgetOldest(UserShare& share);

  UserShares shares_;
  BootClock clock_;
  absl::flat_hash_map<Pid, Lives> processes_;
  absl::flat_hash_map<Pid, PassedOver> passed_over_;
  MonotonicTime last_end_;
  size_t living_ = 0;
  uint64_t last_number_ = 0;
  uint64_t forgotten_early_ = 0;
  uint64_t passed_over_count_ = 0;
};

}  // namespace pyrometer
