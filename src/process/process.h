// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_set.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/address_space.h"
#include "process/jit_dump_file.h"
#include "process/perf_map_directory.h"
#include "process/process_directory.h"
#include "process/token_bucket.h"
#include "process/user_share.h"
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
  bool over_budget = false;  // it has more than it may; new ones are passed over
  bool over_share = false;   // that is so because its user had no more room
  // So often, and at most so much, anonymous code was seen to come or go without a report.
  uint32_t drifts = 0;
  uint64_t drift_pages = 0;
  Address code;  // in the executable; learnt with drift_pages
  RootIdentity root;
  bool root_is_own = false;  // else inherited
  // Of a program that maps one file after another each publish has all of them once more. ld.so's
  // first ones go out at once, since most programs end soon.
  TokenBucket publishes{4, std::chrono::milliseconds(50)};
  // The first event since the last publish that the kernel side has yet to hear of.
  std::optional<MonotonicTime> changed_since = {};
};

using Programs = std::vector<Program, Charged<Program>>;

// Whether the observer has seen a process as what it runs now.
enum class Seen : uint8_t { kNo, kIsToBe, kYes };

// The code in no file of what a process runs, which those that it forks have too until they exec.
struct InheritableCode {
  static constexpr size_t kMost = 8;  // of one process; the nearest

  ProcessKey of;
  std::shared_ptr<const PerfMapDirectory> perf_map;  // of that process; null: none was learnt
  bool is_over = false;  // the process runs something else, which its perf map names now
};

// Its own, if it writes a new one from time to time, and those of who has forked it.
inline constexpr size_t kMostJitDumpsOfOne = 4;

// One life of a pid, from fork to the exit of the last thread.
struct Process {
  explicit Process(const std::shared_ptr<UserShare>& user)
      : share(user), programs(Charged<Program>(user)) {}

  ProcessKey key;
  uint64_t number = 0;               // no other life has it
  std::shared_ptr<UserShare> share;  // of its user; its parent's at first
  bool user_is_own = false;          // else its parent's, and it may have become another since
  bool start_is_exact = false;  // else derived from the fork's report: never early, seldom late
  bool kernel_thread = false;
  MonotonicTime born;
  MonotonicTime ended = kForever;
  MonotonicTime scanned_at;      // events up to then are in its mappings already
  MonotonicTime exec_learnt_at;  // and in its exec id
  absl::flat_hash_set<Tid> threads;
  LabelSet labels;  // at first its parent's
  Seen seen = Seen::kNo;
  // Whose labels it has yet to inherit: its parent, which was not seen either when it was born.
  std::optional<Pid> unseen_parent;
  Programs programs;                // oldest first; at least one
  bool has_anonymous_code = false;  // code that is in no file
  // Held for its windows after its end, if it had such code and there was room.
  std::shared_ptr<const PerfMapDirectory> perf_map;
  std::shared_ptr<InheritableCode> own_code;  // null: nobody has inherited it
  std::vector<std::shared_ptr<const InheritableCode>> inherited_code;  // the nearest first
  std::vector<JitDumpUse> jit_dumps;                                   // the latest first
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

}  // namespace pyrometer
