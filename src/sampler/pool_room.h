// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/free_ranges.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Which regions of the pool of mappings are free. One that is given back is free again when no
// program can be reading it: after kReaderQuarantine, or once the kernel has waited for its
// readers.
//
// One call at a time; but AwaitUnread() beside others, and taken() on any thread.
class PoolRoom {
 public:
  // Returns when no program runs that ran at the time of the call.
  using WaitForReaders = std::function<Result<void>()>;

  // In parts of PYRO_POOL_PART, of which the last may be smaller.
  PoolRoom(size_t slots, WaitForReaders wait_for_readers);

  // The first of `slots` in one part; nothing if there are none.
  std::optional<uint32_t> Take(uint32_t slots);
  // Whether an empty pool would have them.
  bool MayHave(uint32_t slots) const { return slots <= largest_part_; }
  void GiveBack(uint32_t first, uint32_t slots, MonotonicTime now);
  // Frees what no program can be reading.
  void Reuse(MonotonicTime now);

  // Waits until no program can be reading what was given back before the call; Reuse() frees that.
  Result<void> AwaitUnread();

  // Regions given back since the beginning, and those of them that no program reads: what is full
  // now has room, or never had, when the second has become what the first is now.
  uint64_t given_back() const { return given_back_; }
  uint64_t unread() const { return unread_; }

  uint32_t resting() const { return resting_; }  // slots given back and not free yet
  uint64_t taken() const { return taken_; }      // slots that are not free

 private:
  struct Region {
    MonotonicTime given_back;
    uint32_t first = 0;
    uint32_t slots = 0;
  };

  const uint32_t largest_part_;
  const WaitForReaders wait_for_readers_;
  std::vector<FreeRanges> parts_;
  std::deque<Region> at_rest_;
  uint32_t resting_ = 0;
  uint64_t freed_ = 0;  // regions since the beginning
  std::atomic<uint64_t> given_back_ = 0;
  std::atomic<uint64_t> unread_ = 0;
  std::atomic<uint64_t> taken_ = 0;
};

}  // namespace pyrometer
