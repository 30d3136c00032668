// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_namer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolize/named_location.h"

namespace pyrometer {
namespace {

// Of the budget, one process.
constexpr size_t kMostShare = 4;
// What a byte of a perf map takes in memory, unless its names are very short; and its first bytes.
constexpr uint64_t kExpansion = 3;
constexpr uint64_t kLeastBytes = 8192;
// Windows for which a process's part is kept for it.
constexpr uint32_t kOfLate = 6;

std::shared_ptr<const CodeObject> JitObject() {
  auto object = std::make_shared<CodeObject>();
  object->path = "[jit]";
  object->has_functions = true;
  return object;
}

}  // namespace

JitNamer::JitNamer(PerfMapSource& source, const Budget& budget, SymbolizerCounts& counts)
    : source_(source),
      budget_(budget),
      counts_(counts),
      jit_(JitObject()),
      level_(budget.bytes / kMostShare),
      to_read_(budget.to_read) {}

LocationRef JitNamer::Name(Frame frame, ProcessKey key, uint32_t window) {
  const Address address = frame.user_address();
  const auto [entry, added] = processes_.try_emplace(key);
  Process& process = entry->second;
  if (added || process.window != window) {
    process.window = window_ = window;
    ReadPerfMap(key, process);
  }
  if (process.is_behind) return NameUnread(process, address);
  const std::optional<std::string_view> name = process.perf_map.Find(address);
  LocationRef known = process.locations.Find(address, window);
  // A name once found holds until another comes: the process, and its file, may be gone by now.
  const bool is_same = known != nullptr && (!name || known->lines.front().function == *name);
  const bool is_certain_now =
      name && is_same && known->quality == NameQuality::kMadeUp && !MayGrow(process, address);
  if (is_same && !is_certain_now) return known;
  LocationRef location = MakeNew(process, address);
  process.locations.Put(address, location, window);
  return location;
}

LocationRef JitNamer::NameUnread(Process& process, Address address) {
  if (LocationRef known = process.unread.Find(address, process.window)) return known;
  ++counts_.locations;
  counts_.Add(Unresolved::kNotReady);
  LocationRef location = UnknownLocation(address.value());
  process.unread.Put(address, location, process.window);
  return location;
}

bool JitNamer::MayGrow(const Process& process, Address address) {
  const std::optional<PerfMap::Function>& tail = process.perf_map.tail();
  return process.writer == PerfMap::Writer::kMayWrite && tail && tail->Contains(address);
}

void JitNamer::ReadPerfMap(ProcessKey key, Process& process) {
  // Asked first, since it might write a last time while the file is read.
  process.writer = source_.HasEnded(key) ? PerfMap::Writer::kGone : PerfMap::Writer::kMayWrite;
  process.unread = {};
  PerfMap& map = process.perf_map;
  if (const Result<UniqueFd> fd = source_.Open(key)) {
    const std::optional<PerfMap::Function> tail = map.tail();
    const PerfMap::Losses before = map.losses();
    UpdatePerfMap(fd->get(), process);
    // Without a map the addresses count as unresolved.
    process.locations.DropIf([&](Address a) {
      if (map.Find(a)) return false;
      // Other code may have taken its place, without our knowing; or what it named was a part of a
      // name, if the line has grown.
      return map.missing_at() != 0 || (tail && tail->Contains(a));
    });
    const PerfMap::Losses& after = map.losses();
    counts_.bad_perf_map_lines += after.bad_lines - before.bad_lines;
    counts_.perf_map_functions_forgotten += after.forgotten - before.forgotten;
    counts_.perf_map_bytes_left_out += after.left_out - before.left_out;
  } else {
    process.is_behind = false;
  }
}

void JitNamer::UpdatePerfMap(int fd, Process& process) {
  PerfMap& map = process.perf_map;
  const bool was_behind = std::exchange(process.is_behind, false);
  // Once there is room for more than when something was forgotten.
  const bool again = level_ / 8 * 7 >= map.missing_at();
  const Result<uint64_t> unread = map.Unread(fd, again);
  if (!unread) return;
  const size_t most = budget_.bytes / kMostShare;
  const size_t own = map.bytes();
  size_t needed = own;
  if (*unread > 0) {
    needed =
        static_cast<size_t>(std::min<uint64_t>(most, own + kExpansion * *unread + kLeastBytes));
  }
  process.demand = map.missing_at() != 0 ? most : needed;
  MakeRoomFor(process, needed);
  const size_t others = bytes_ - own;
  const size_t room = budget_.bytes > others ? budget_.bytes - others : 0;
  const uint64_t reserved = was_behind ? 0 : std::min(reserved_, to_read_);
  PerfMap::Limits limits{
      .memory = std::min(room, most), .to_read = to_read_ - reserved, .again = again};
  const Result<void> result = map.Update(fd, process.writer, limits);
  bytes_ = others + map.bytes();
  const uint64_t read = to_read_ - reserved - limits.to_read;
  to_read_ -= read;
  if (was_behind) reserved_ -= std::min(reserved_, read);
  process.demand = map.missing_at() != 0 ? most : map.bytes();
  process.is_behind = !result && result.error().code() != ErrorCode::kInvalid;
  if (process.is_behind) refused_ += std::min<uint64_t>(*unread, 2 * uint64_t{limits.memory});
}

size_t JitNamer::FairLevel() const {
  const size_t most = budget_.bytes / kMostShare;
  std::vector<size_t> demands;
  for (const auto& [key, process] : processes_) {
    if (process.window + kOfLate >= window_) demands.push_back(process.demand);
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

void JitNamer::MakeRoomFor(const Process& process, size_t needed) {
  const size_t own = process.perf_map.bytes();
  const auto is_enough = [&] { return bytes_ - own + needed <= budget_.bytes; };
  if (is_enough()) return;
  std::vector<Process*> others;
  for (auto& [key, other] : processes_) {
    if (&other != &process && !other.perf_map.empty()) others.push_back(&other);
  }
  std::ranges::sort(others, {}, &Process::window);
  for (Process* const other : others) {
    if (is_enough() || other->window + kOfLate >= window_) break;
    Evict(*other);
  }
  if (is_enough()) return;
  level_ = FairLevel();
  needed = std::clamp(level_, own, std::max(own, needed));
  const auto bytes_of = [](const Process* other) { return other->perf_map.bytes(); };
  std::ranges::sort(others, std::ranges::greater(), bytes_of);
  for (Process* const other : others) {
    if (is_enough() || bytes_of(other) <= level_) break;
    Shrink(*other, level_);
  }
}

void JitNamer::Shrink(Process& process, size_t bytes) {
  PerfMap& map = process.perf_map;
  const uint64_t forgotten = map.losses().forgotten;
  bytes_ -= map.bytes();
  map.ShrinkBelow(bytes);
  bytes_ += map.bytes();
  if (map.losses().forgotten == forgotten) return;
  counts_.perf_map_functions_forgotten += map.losses().forgotten - forgotten;
  process.locations.DropIf([&](Address a) { return !map.Find(a); });
}

// Its names hold: when it is needed again, the file is read again.
void JitNamer::Evict(Process& process) {
  bytes_ -= process.perf_map.bytes();
  PerfMap empty;
  std::swap(process.perf_map, empty);  // an assignment might keep the memory
  process.demand = 0;
}

LocationRef JitNamer::MakeNew(const Process& process, Address address) {
  ++counts_.locations;
  if (const auto name = process.perf_map.Find(address)) {
    if (MayGrow(process, address)) {
      return MadeUpLocation(CodeOrigin::kJit, jit_, address.value(), std::string(*name));
    }
    return MakeLocation(CodeOrigin::kJit, jit_, address.value(), SameName(std::string(*name)));
  }
  counts_.Add(process.perf_map.empty() ? Unresolved::kUnmapped : Unresolved::kJit);
  return UnknownLocation(address.value());
}

void JitNamer::EndWindow(uint32_t unused_since) {
  absl::erase_if(processes_, [=](const auto& p) { return p.second.window < unused_since; });
  bytes_ = 0;
  for (auto& [key, process] : processes_) {
    process.locations.DropUnusedSince(unused_since);
    process.unread = {};
    bytes_ += process.perf_map.bytes();
  }
  level_ = FairLevel();
  to_read_ = budget_.to_read;
  reserved_ = std::min(std::exchange(refused_, 0), to_read_ / 2);
}

}  // namespace pyrometer
