// SPDX-License-Identifier: Apache-2.0
#include "sampler/pool_room.h"

#include <algorithm>

#include "pyrometer/abi/sampler.h"
#include "sampler/quarantine.h"

namespace pyrometer {

PoolRoom::PoolRoom(size_t slots, WaitForReaders wait_for_readers)
    : largest_part_(static_cast<uint32_t>(std::min<size_t>(slots, PYRO_POOL_PART))),
      wait_for_readers_(std::move(wait_for_readers)) {
  for (size_t first = 0; first < slots; first += PYRO_POOL_PART) {
    parts_.emplace_back(static_cast<uint32_t>(std::min<size_t>(slots - first, PYRO_POOL_PART)));
  }
}

std::optional<uint32_t> PoolRoom::Take(uint32_t slots) {
  for (size_t part = 0; part < parts_.size(); ++part) {
    const std::optional<uint32_t> first = parts_[part].Take(slots);
    if (!first) continue;
    taken_ += slots;
    return static_cast<uint32_t>(part * PYRO_POOL_PART) + *first;
  }
  return std::nullopt;
}

void PoolRoom::GiveBack(uint32_t first, uint32_t slots, MonotonicTime now) {
  at_rest_.push_back({.given_back = now, .first = first, .slots = slots});
  resting_ += slots;
  ++given_back_;
}

void PoolRoom::Reuse(MonotonicTime now) {
  const uint64_t unread = unread_;
  while (!at_rest_.empty()) {
    const auto [given_back, first, slots] = at_rest_.front();
    if (freed_ >= unread && !IsOver(kReaderQuarantine, given_back, now)) return;
    parts_[first / PYRO_POOL_PART].GiveBack(first % PYRO_POOL_PART, slots);
    at_rest_.pop_front();
    resting_ -= slots;
    taken_ -= slots;
    ++freed_;
  }
}

Result<void> PoolRoom::AwaitUnread() {
  const uint64_t given_back = given_back_;
  RETURN_IF_ERROR(wait_for_readers_());
  unread_ = given_back;
  return {};
}

}  // namespace pyrometer
