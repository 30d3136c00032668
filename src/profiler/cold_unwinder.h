// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <stop_token>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "process/process_knowledge.h"
#include "profiler/cold_view.h"
#include "pyrometer/cold_sample.h"
#include "pyrometer/sample.h"
#include "sampler/faces.h"

namespace pyrometer {

// Unwinds the samples that the kernel side could not. One thread runs it; any may ask for the rest.
class ColdUnwinder {
 public:
  // Unwound samples that wait for a window to be taken, some 1 KiB each. Beyond, the kernel side's
  // ring fills up, and it refuses what does not fit: those stacks say so.
  static constexpr size_t kMaxDone = 16384;

  struct Counters {
    uint64_t unwound = 0;
    uint64_t over_budget = 0;  // of these: cut, because they would have cost too much
    uint64_t given_up = 0;     // not unwound by the deadline at the end: their stacks say so
    uint64_t waiting = 0;      // taken from the ring and not yet unwound
    uint64_t done = 0;         // unwound, and not yet in a window
  };

  // All must outlive this.
  ColdUnwinder(ColdSource& source, ProcessKnowledge& processes, UnwindTableSource& tables)
      : source_(source), processes_(processes), tables_(tables) {}

  // Until stopped: unwinds what comes, and waits. A stop is heard between two samples.
  void Run(const std::stop_token& stop);

  // Takes what was shipped and unwinds it, unless too much waits to be taken by windows already.
  // True if there was anything.
  bool Unwind(const std::stop_token& stop = {});

  // Adds to `window` the samples unwound since the last call.
  void MoveInto(Window& window);

  // Waits until all that was shipped before the call is unwound. What is not by `until` is given
  // up: it goes out with its kernel stack and its leaf, as kNotReady. Then nothing more is unwound.
  // REQUIRES: somebody runs this, and ticks have ended.
  void Finish(std::chrono::steady_clock::time_point until);

  Counters counters() const;

 private:
  struct Unwound {
    ColdSample sample;  // without its stack bytes
    ColdStack stack;
  };

  // The next one to be unwound, which stays in front of taken_ meanwhile; null if there is none.
  const ColdSample* Next();
  ColdStack UnwindOne(const ColdSample& sample);
  void Done(ColdStack stack);
  bool IsBehind() const;
  void GiveUp(const ColdSample& sample) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause(std::chrono::milliseconds most);

  ColdSource& source_;
  ProcessKnowledge& processes_;
  UnwindTableSource& tables_;
  absl::Mutex source_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // while source_ is read
  mutable absl::Mutex mutex_;
  std::deque<ColdSample> taken_ ABSL_GUARDED_BY(mutex_);  // still to be unwound
  std::vector<Unwound> done_ ABSL_GUARDED_BY(mutex_);
  bool hurried_ ABSL_GUARDED_BY(mutex_) = false;    // Finish() waits, or this is to stop
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // Finish() waits
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
