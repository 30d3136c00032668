// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <stop_token>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "process/process_knowledge.h"
#include "profiler/cold_view.h"
#include "pyrometer/cold_sample.h"
#include "pyrometer/ids.h"
#include "pyrometer/sample.h"
#include "sampler/faces.h"

namespace pyrometer {

// Unwinds cold samples: those that the kernel side could not unwind. One thread calls Run() (or
// Unwind()); the other methods may be called from any thread.
class ColdUnwinder {
 public:
  // Limit on unwound samples waiting for a window, about 1 KiB each. Beyond it the kernel side's
  // ring fills up; the kernel side then refuses what does not fit and marks those stacks.
  static constexpr size_t kMaxDone = 16384;

  // Limit on the stack bytes of samples that wait for a table; of samples it is kMaxDone. Beyond
  // these the oldest goes into a window as far as it could be unwound, marked kNotReady.
  static constexpr size_t kMaxPutAside = size_t{16} << 20;

  struct Counters {
    uint64_t unwound = 0;
    uint64_t over_budget = 0;  // of these: cut, because they exceeded the UnwindBudget
    uint64_t code_late = 0;    // of these: cut, since code did not come in time: marked kNotReady
    uint64_t given_up = 0;     // not unwound by the deadline of Finish(): marked kNotReady
    uint64_t no_room = 0;      // not kept until a table was there, for kMaxPutAside: likewise
    uint64_t waiting = 0;      // taken from the ring and not yet unwound
    uint64_t put_aside = 0;    // of these: their table is being made
    uint64_t done = 0;         // unwound, and not yet in a window
  };

  // All must outlive this.
  struct Parts {
    ColdSource& source;
    ProcessKnowledge& processes;
    UnwindTableSource& tables;
    TableTarget& kernel_tables;
    const Clock& clock;
  };
  explicit ColdUnwinder(const Parts& parts)
      : source_(parts.source),
        processes_(parts.processes),
        tables_(parts.tables),
        kernel_tables_(parts.kernel_tables),
        clock_(parts.clock) {}

  // Unwinds what comes, and waits, until stopped. A stop takes effect between two samples.
  void Run(const std::stop_token& stop);

  // Unwinds what has been shipped, up to kMaxDone unwound samples. A sample whose table is still
  // being made is put aside until that is there. True if anything was done.
  bool Unwind(const std::stop_token& stop = {});

  // Adds to `window` the samples that were unwound since the last call and taken by its end.
  void MoveInto(Window& window);

  // Waits until everything shipped before the call is unwound. Samples not unwound by `until` are
  // given up: they keep their kernel stack and their leaf, marked kNotReady. After that nothing
  // more is unwound. REQUIRES: a thread is in Run(), and ticks have ended.
  void Finish(MonotonicTime until);

  Counters counters() const;

 private:
  struct Unwound {
    ColdSample sample;  // without its stack bytes
    ColdStack stack;
  };

  // Which was unwound up to code whose table is still being made.
  struct PutAside {
    ColdSample sample;
    ColdStack so_far;
  };

  // The next sample to unwind, which stays at the front of taken_ meanwhile; null if there is none.
  const ColdSample* Next();
  ColdStack UnwindOne(const ColdSample& sample);
  bool Done(ColdStack stack);
  void TakeUpAgain();
  void LimitPutAside() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsBehind() const;
  void GiveUp(const ColdSample& sample, ColdStack stack) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause(std::chrono::milliseconds most);

  ColdSource& source_;
  ProcessKnowledge& processes_;
  UnwindTableSource& tables_;
  TableTarget& kernel_tables_;
  const Clock& clock_;
  absl::Mutex source_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // while source_ is read
  mutable absl::Mutex mutex_;
  std::deque<ColdSample> taken_ ABSL_GUARDED_BY(mutex_);  // not yet unwound
  std::deque<PutAside> put_aside_ ABSL_GUARDED_BY(mutex_);
  size_t put_aside_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Unwound> done_ ABSL_GUARDED_BY(mutex_);
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;    // Finish() waits, or Run() is to stop
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // Finish() waits
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
