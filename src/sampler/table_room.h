// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/free_ranges.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Which slots of tables and which pages are free in the kernel side's fixed arrays. What is given
// back rests for kReaderQuarantine: a program may still be reading it. Thread-compatible.
class TableRoom {
 public:
  TableRoom(uint32_t slots, uint32_t pages);

  // Never slot 0, which is for objects that have no place. Nothing if none is free.
  std::optional<uint32_t> TakeSlot() { return free_slots_.Take(1); }
  // The first of `count` pages in a row; nothing if there are none.
  std::optional<uint32_t> TakePages(uint32_t count) { return free_pages_.Take(count); }

  void GiveBackSlot(uint32_t slot, MonotonicTime now);
  void GiveBackPages(uint32_t first, uint32_t count, MonotonicTime now);

  // True if so many pages in a row, given back together, are at rest.
  bool AreAtRest(uint32_t pages) const;

  struct Freed {
    bool slots = false;
    bool pages = false;
  };
  // Frees what has rested, and says whether there was any.
  Freed Reuse(MonotonicTime now);

 private:
  struct Resting {
    MonotonicTime given_back;
    uint32_t slot = 0;  // 0: none
    uint32_t first_page = 0;
    uint32_t page_count = 0;
  };

  FreeRanges free_slots_;
  FreeRanges free_pages_;
  std::deque<Resting> at_rest_;
};

}  // namespace pyrometer
