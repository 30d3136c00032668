// SPDX-License-Identifier: Apache-2.0
#include "sampler/table_room.h"

#include <algorithm>

#include "sampler/quarantine.h"

namespace pyrometer {

TableRoom::TableRoom(uint32_t slots, uint32_t pages) : free_slots_(slots), free_pages_(pages) {
  free_slots_.Take(1);
}

void TableRoom::GiveBackSlot(uint32_t slot, MonotonicTime now) {
  at_rest_.push_back({.given_back = now, .slot = slot});
}

void TableRoom::GiveBackPages(uint32_t first, uint32_t count, MonotonicTime now) {
  at_rest_.push_back({.given_back = now, .first_page = first, .page_count = count});
}

bool TableRoom::AreAtRest(uint32_t pages) const {
  return std::ranges::any_of(
      at_rest_, [pages](const Resting& resting) { return resting.page_count >= pages; });
}

TableRoom::Freed TableRoom::Reuse(MonotonicTime now) {
  Freed freed;
  while (!at_rest_.empty() && IsOver(kReaderQuarantine, at_rest_.front().given_back, now)) {
    const Resting& resting = at_rest_.front();
    if (resting.slot != 0) {
      free_slots_.GiveBack(resting.slot, 1);
      freed.slots = true;
    }
    if (resting.page_count > 0) {
      free_pages_.GiveBack(resting.first_page, resting.page_count);
      freed.pages = true;
    }
    at_rest_.pop_front();
  }
  return freed;
}

}  // namespace pyrometer
