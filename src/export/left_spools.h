// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "export/spool_directory.h"

namespace pyrometer {

// Looks after the spools of sinks that the configuration no longer names. What is in them waits for
// its sink to come back, as long as it is not too old and all spools together are no larger than
// they may be; else it goes, oldest first, counted and told. An empty one goes with its directory;
// one that another process uses is left alone. A thread of its own touches the disk, and ends when
// nothing is left.
class LeftSpools {
 public:
  struct Options {
    std::string directory;       // that the spools are in
    std::set<std::string> used;  // the names of those that somebody writes to
    uint64_t max_size = 0;       // bytes, of all spools together, those in use included
    std::chrono::nanoseconds max_age{};
    std::chrono::nanoseconds interval = std::chrono::minutes(1);
    std::function<void()> on_thread_start;
  };
  struct Counters {
    uint64_t files = 0;
    uint64_t bytes = 0;
    // By reason: "too_old", "spool_full".
    std::map<std::string, uint64_t, std::less<>> dropped_ticks;
    // Of these, files whose ticks could not be counted.
    uint64_t unreadable_files = 0;
  };

  // `counters` are those of an earlier one. The others outlive this.
  LeftSpools(Options options, Counters counters, const Clock& clock, Log& log);
  ~LeftSpools() = default;  // as Stop
  LeftSpools(const LeftSpools&) = delete;
  LeftSpools& operator=(const LeftSpools&) = delete;

  // Waits for what it is doing, at most with one file, and leaves the spools alone from then on.
  // Returns the last counters. Of one thread.
  Counters Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Thread-safe.
  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct LeftFile {
    std::string spool;  // the name of its directory
    SpoolFileFacts facts;
  };

  void Run(const std::stop_token& stop);
  // False: nothing is left.
  bool Sweep(const std::stop_token& stop);
  // Of the spools that nobody writes to; and the bytes in those in use.
  std::vector<LeftFile> FindLeft(uint64_t& used_bytes, std::set<std::string>& empty) const;
  bool IsTooOld(const SpoolFileFacts& file) const;
  // False if another process has the spool, or the disk does not let us.
  bool Drop(const LeftFile& file, std::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveEmpty(const std::set<std::string>& spools) const;
  std::string PathOf(const std::string& spool) const { return options_.directory + "/" + spool; }

  const Options options_;
  const Clock& clock_;
  Log& log_;
  mutable absl::Mutex mutex_;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // the first to go
};

}  // namespace pyrometer
