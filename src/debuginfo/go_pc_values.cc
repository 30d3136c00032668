// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_pc_values.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace pyrometer {
namespace {

// Of 32 bits; takes what it has read off the front of `bytes`.
std::optional<uint32_t> TakeVarint(std::span<const std::byte>& bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes.size() && i < 5; ++i) {
    const auto byte = static_cast<uint32_t>(bytes[i]);
    value |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    bytes = bytes.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

uint32_t FromZigzag(uint32_t value) {
  return (value >> 1) ^ (~(value & 1) + 1);
}

}  // namespace

bool GoPcValues::Read(std::span<const std::byte> table, uint64_t size, std::vector<GoRun>& runs) {
  runs.clear();
  size = std::min<uint64_t>(size, std::numeric_limits<uint32_t>::max());
  uint64_t at = 0;
  uint32_t value = ~uint32_t{0};
  while (at < size) {
    const auto difference = TakeVarint(table);
    if (difference == 0 && at > 0) return true;
    const auto count = difference ? TakeVarint(table) : std::nullopt;
    if (!count || *count == 0 || steps_left_ == 0 || runs.size() == kMaxRuns) {
      runs.clear();
      return false;
    }
    --steps_left_;
    value += FromZigzag(*difference);
    const uint64_t end = std::min(at + uint64_t{*count} * quantum_, size);
    runs.push_back({.begin = static_cast<uint32_t>(at),
                    .end = static_cast<uint32_t>(end),
                    .value = static_cast<int32_t>(value)});
    at = end;
  }
  return true;
}

int32_t ValueAt(std::span<const GoRun> runs, uint64_t offset) {
  const auto run = std::ranges::upper_bound(runs, offset, {}, &GoRun::end);
  return run == runs.end() ? -1 : run->value;
}

}  // namespace pyrometer
