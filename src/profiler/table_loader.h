// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "profiler/cold_view.h"
#include "pyrometer/ids.h"
#include "sampler/faces.h"

namespace pyrometer {

// Keeps the kernel side supplied with unwind tables. One thread runs it; any may call counters().
class TableLoader {
 public:
  struct Counters {
    uint64_t loaded = 0;   // tables handed to the kernel side, including repeats
    uint64_t retried = 0;  // of these: the object's file could not be read before
    uint64_t waiting = 0;  // objects whose table it lacks now
  };

  // After so long a table is asked for again whose file could not be read.
  static constexpr std::chrono::minutes kRetry{1};

  // All must outlive this.
  TableLoader(TableTarget& target, UnwindTableSource& tables, const Clock& clock)
      : target_(target), tables_(tables), clock_(clock) {}

  // Loads what is wanted, and waits, until stopped. A stop takes effect between two tables.
  void Run(const std::stop_token& stop);

  // Loads what is wanted for up to `time`; the rest waits for the next call. True if there was
  // anything to load.
  bool Load(std::chrono::nanoseconds time, const std::stop_token& stop = {});

  Counters counters() const;

 private:
  // An object whose file could not be read: its table is tried again.
  struct Retry {
    MonotonicTime when;
    ObjectId object;
  };

  void TakeWanted();
  void LoadFirst();

  TableTarget& target_;
  UnwindTableSource& tables_;
  const Clock& clock_;
  std::deque<ObjectId> wanted_;  // like retries_, owned by the running thread
  std::deque<Retry> retries_;    // the next one first; at most one for each published object
  mutable absl::Mutex mutex_;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
