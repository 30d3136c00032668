// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "process/process_event.h"

namespace pyrometer {

// Sorts events of several rings by time.
//
// An event can be released once every ring has been read at or after its time: then no ring can
// still hold an earlier event that it depends on. (The kernel publishes a fork before the child
// runs, and what changes one address space happens under its lock, so a cause is in its ring before
// its effect gets a time.) Thread-compatible.
class EventMerger {
 public:
  void Add(ProcessEvent event) { pending_.push_back(std::move(event)); }

  // All events up to `horizon`, in order. REQUIRES: every ring was read after `horizon`.
  std::vector<ProcessEvent> Release(MonotonicTime horizon);

  // Events that are later than the last horizon.
  bool has_pending() const { return !pending_.empty(); }

  // Events released after later ones; unrelated to those, but counted.
  uint64_t late() const { return late_; }

 private:
  std::vector<ProcessEvent> pending_;
  MonotonicTime released_;
  uint64_t late_ = 0;
};

}  // namespace pyrometer
