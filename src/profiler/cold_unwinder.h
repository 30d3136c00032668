// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "indexer/indexer.h"
#include "process/process_tracker.h"
#include "profiler/cold_view.h"
#include "profiler/unwind_tables.h"
#include "pyrometer/sample.h"
#include "sampler/sampler.h"

namespace pyrometer {

// Keeps the kernel side in unwind tables, and unwinds what it could not: on a thread of its own,
// which is woken for both, and then looks for more twenty times a second as long as there is any.
class ColdUnwinder {
 public:
  // All must outlive this.
  ColdUnwinder(Sampler& sampler, ProcessTracker& tracker, Indexer& indexer);
  ~ColdUnwinder();
  ColdUnwinder(const ColdUnwinder&) = delete;
  ColdUnwinder& operator=(const ColdUnwinder&) = delete;

  // Adds to `window` the samples unwound since the last call.
  void MoveInto(Window& window);

  // Unwinds what was shipped before the call; for the last window.
  void Finish();

 private:
  struct Unwound {
    ColdSample sample;  // without its stack bytes
    ColdStack stack;
  };

  enum class Next { kMore, kSoon, kWait };  // what is to be done is not all done; all; nothing was

  void Run(const std::stop_token& stop);
  Next Work();
  // True if there was something to do; both. What is left when `time` is over waits.
  bool LoadTables(std::chrono::milliseconds time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  bool IsBehind() const;
  bool UnwindSamples(std::chrono::milliseconds time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  ColdStack UnwindOne(const ColdSample& sample) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);

  Sampler& sampler_;
  ProcessTracker& tracker_;
  absl::Mutex work_ ABSL_ACQUIRED_BEFORE(done_mutex_);
  UnwindTables tables_ ABSL_GUARDED_BY(work_);
  std::deque<ObjectId> wanted_ ABSL_GUARDED_BY(work_);   // tables that the kernel side still misses
  std::deque<ColdSample> taken_ ABSL_GUARDED_BY(work_);  // still to be unwound
  mutable absl::Mutex done_mutex_;
  std::vector<Unwound> done_ ABSL_GUARDED_BY(done_mutex_);
  std::jthread thread_;
};

}  // namespace pyrometer
