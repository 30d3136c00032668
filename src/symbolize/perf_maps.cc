// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_maps.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

// Of the budget, one process.
constexpr size_t kMostShare = 4;
// What a byte of a perf map takes in memory, unless its names are very short; and its first bytes.
constexpr uint64_t kExpansion = 3;
constexpr uint64_t kLeastBytes = 8192;
// Windows for which a process's part is kept for it.
constexpr uint32_t kOfLate = 6;

}  // namespace

PerfMaps::PerfMaps(PerfMapReader& reader, const Budget& budget, SymbolizerCounts& counts)
    : reader_(reader),
      budget_(budget),
      counts_(counts),
      level_(budget.bytes / kMostShare),
      to_read_(budget.to_read) {}

PerfMaps::Entry& PerfMaps::Need(ProcessKey process, uint32_t window) {
  Entry& entry = entries_[process];
  entry.window = window_ = window;
  return entry;
}

size_t PerfMaps::DemandOf(const Entry& entry, uint64_t unread) const {
  const size_t most = budget_.bytes / kMostShare;
  if (entry.map.missing_at() != 0) return most;
  const size_t own = entry.map.bytes();
  if (unread == 0) return own;
  return static_cast<size_t>(std::min<uint64_t>(most, own + kExpansion * unread + kLeastBytes));
}

bool PerfMaps::Look(Entry& entry, int fd) {
  if (const Result<uint64_t> unread = entry.map.Unread(fd, false)) {
    entry.demand = DemandOf(entry, *unread);
    is_planned_ = false;
  }
  return !entry.map.HasAll(fd);
}

void PerfMaps::Update(Entry& entry, int fd, PerfMap::Writer writer) {
  PerfMap& map = entry.map;
  const bool was_behind = std::exchange(entry.is_behind, false);
  if (!std::exchange(is_planned_, true)) level_ = FairLevel();
  // Once there is room for more than when something was forgotten.
  const bool again = level_ / 8 * 7 >= map.missing_at();
  const Result<uint64_t> unread = map.Unread(fd, again);
  if (!unread) return;
  entry.demand = DemandOf(entry, *unread);
  const size_t own = map.bytes();
  MakeRoomFor(entry, *unread > 0 ? entry.demand : own);
  const size_t others = bytes_ - own;
  const size_t room = budget_.bytes > others ? budget_.bytes - others : 0;
  const uint64_t reserved = was_behind ? 0 : std::min(reserved_, to_read_);
  PerfMap::Limits limits{.memory = std::min(room, std::max(level_, own)),
                         .to_read = to_read_ - reserved,
                         .again = again};
  const PerfMap::Losses before = map.losses();
  Result<void> result = map.Update(fd, writer, limits, reader_);
  if (!result && result.error().code() == ErrorCode::kInternal) {
    limits.again = false;  // it goes on where its reader has died
    result = map.Update(fd, writer, limits, reader_);
  }
  CountLosses(before, map.losses());
  bytes_ = others + map.bytes();
  const uint64_t read = to_read_ - reserved - limits.to_read;
  to_read_ -= read;
  if (was_behind) reserved_ -= std::min(reserved_, read);
  entry.demand = DemandOf(entry, 0);
  entry.is_behind = !result && result.error().code() != ErrorCode::kInvalid;
  if (entry.is_behind) refused_ += std::min<uint64_t>(*unread, 2 * uint64_t{limits.memory});
}

size_t PerfMaps::FairLevel() const {
  const size_t most = budget_.bytes / kMostShare;
  std::vector<size_t> demands;
  for (const auto& [process, entry] : entries_) {
    if (entry.window + kOfLate >= window_) demands.push_back(entry.demand);
  }
  std::ranges::sort(demands);
  size_t left = budget_.bytes;
  for (size_t i = 0; i < demands.size(); ++i) {
    const size_t equal = left / (demands.size() - i);
    if (demands[i] > equal) return std::min(equal, most);
    left -= demands[i];
  }
  return most;
}

void PerfMaps::MakeRoomFor(const Entry& entry, size_t needed) {
  const size_t own = entry.map.bytes();
  const auto is_enough = [&] { return bytes_ - own + needed <= budget_.bytes; };
  if (is_enough()) return;
  std::vector<Entry*> others;
  for (auto& [process, other] : entries_) {
    if (&other != &entry && !other.map.empty()) others.push_back(&other);
  }
  std::ranges::sort(others, {}, &Entry::window);
  for (Entry* const other : others) {
    if (is_enough() || other->window + kOfLate >= window_) break;
    Evict(*other);
  }
  if (is_enough()) return;
  level_ = FairLevel();
  needed = std::clamp(level_, own, std::max(own, needed));
  const auto bytes_of = [](const Entry* other) { return other->map.bytes(); };
  std::ranges::sort(others, std::ranges::greater(), bytes_of);
  for (Entry* const other : others) {
    if (is_enough() || bytes_of(other) <= level_) break;
    Shrink(*other, level_);
  }
}

void PerfMaps::Shrink(Entry& entry, size_t bytes) {
  const PerfMap::Losses before = entry.map.losses();
  bytes_ -= entry.map.bytes();
  entry.map.ShrinkBelow(bytes);
  bytes_ += entry.map.bytes();
  CountLosses(before, entry.map.losses());
}

// When it is needed again, the file is read again.
void PerfMaps::Evict(Entry& entry) {
  bytes_ -= entry.map.bytes();
  PerfMap empty;
  std::swap(entry.map, empty);  // an assignment might keep the memory
  entry.demand = 0;
}

void PerfMaps::CountLosses(const PerfMap::Losses& before, const PerfMap::Losses& after) {
  counts_.bad_perf_map_lines += after.bad_lines - before.bad_lines;
  counts_.perf_map_functions_forgotten += after.forgotten - before.forgotten;
  counts_.perf_map_bytes_left_out += after.left_out - before.left_out;
}

void PerfMaps::EndWindow(uint32_t unused_since) {
  absl::erase_if(entries_, [=](const auto& entry) { return entry.second.window < unused_since; });
  bytes_ = 0;
  for (const auto& [process, entry] : entries_) bytes_ += entry.map.bytes();
  level_ = FairLevel();
  to_read_ = budget_.to_read;
  reserved_ = std::min(std::exchange(refused_, 0), to_read_ / 2);
}

}  // namespace pyrometer
