// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <stop_token>
#include <utility>
#include <vector>

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
    uint64_t pending = 0;  // of these: being made
  };

  // After so long a table is asked for again whose file could not be read.
  static constexpr std::chrono::minutes kRetry{1};

  // So many tables are being made at a time: what is mapped later soon has its turn.
  static constexpr size_t kMostPending = 64;

  // How often `look` is called, for kNewFor after a table was loaded; then when this thread wakes,
  // every few seconds.
  static constexpr std::chrono::seconds kLookInterval{1};
  static constexpr std::chrono::seconds kNewFor{10};

  // All must outlive this. `look`, if any, is called by Run() from time to time: samples may have
  // met what was loaded.
  TableLoader(TableTarget& target, UnwindTableSource& tables, const Clock& clock,
              std::function<void()> look = nullptr)
      : target_(target), tables_(tables), clock_(clock), look_(std::move(look)) {}

  // Loads what is wanted, and waits, until stopped. A stop takes effect between two tables.
  void Run(const std::stop_token& stop);

  // Loads what is wanted for up to `time`; the rest waits for the next call, and so does what is
  // still being made. True if anything was loaded or asked for.
  bool Load(std::chrono::nanoseconds time, const std::stop_token& stop = {});

  // Loads what is wanted, and waits for what is being made, for up to `time`. The target must be
  // woken when a table is made. REQUIRES: comes before Run().
  void LoadAll(std::chrono::nanoseconds time);

  Counters counters() const;

 private:
  // An object whose file could not be read: its table is tried again.
  struct Retry {
    MonotonicTime when;
    ObjectId object;
  };

  std::chrono::milliseconds LookIfDue();
  void TakeWanted();
  void TakeMade();
  void LoadFirst();

  TableTarget& target_;
  UnwindTableSource& tables_;
  const Clock& clock_;
  const std::function<void()> look_;  // may be empty
  MonotonicTime next_look_;
  MonotonicTime last_loaded_;
  std::deque<ObjectId> wanted_;  // like retries_, owned by the running thread
  std::vector<ObjectId> pending_;
  std::deque<Retry> retries_;  // the next one first; at most one for each published object
  mutable absl::Mutex mutex_;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
