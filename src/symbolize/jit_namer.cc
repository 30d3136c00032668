// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_namer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "symbolize/named_location.h"

namespace pyrometer {
namespace {

std::shared_ptr<const CodeObject> JitObject() {
  auto object = std::make_shared<CodeObject>();
  object->path = "[jit]";
  object->has_functions = true;
  return object;
}

// For one jitdump in a window: others want to be read, too.
constexpr std::chrono::milliseconds kMostTime(500);

// What the files of one process may take: so one alone never exceeds the budget, to be read from
// its beginning in each window.
size_t OfOne(size_t budget) {
  return budget - budget / 4;
}

bool IsSame(const Line& line, const JitDump::Place& place) {
  return line.function == place.function && line.file == place.file && line.line == place.line;
}

}  // namespace

JitNamer::Process::Process(const Budget& budget)
    : perf_map(OfOne(budget.perf_map_bytes)), jit_dump(OfOne(budget.jit_dump_bytes)) {}

JitNamer::JitNamer(JitSource& source, const Budget& budget, SymbolizerCounts& counts)
    : source_(source), budget_(budget), counts_(counts), jit_(JitObject()) {}

LocationRef JitNamer::Name(Frame frame, const FrameOwner& owner, uint32_t window) {
  const Address address = frame.user_address();
  const auto [entry, added] = processes_.try_emplace(owner.process, budget_);
  Process& process = entry->second;
  if (added || process.window != window) {
    process.window = window;
    // Asked first, since it might write a last time while its files are read.
    process.writer =
        source_.HasEnded(owner.process) ? PerfMap::Writer::kGone : PerfMap::Writer::kMayWrite;
    if (!source_.HasTime()) ++counts_.jit_files_put_off;
    ReadJitDump(owner.process, process);
    ReadPerfMap(owner.process, process);
  }
  const std::optional<Found> found = Find(process, address, owner.last_seen);
  LocationRef known = process.locations.Find(address, window);
  // A name once found holds until another comes: the process, and its file, may be gone by now.
  const bool is_same = known != nullptr && (!found || IsSame(known->lines.front(), found->place));
  const bool is_certain_now =
      found && is_same && known->quality == NameQuality::kMadeUp && !found->may_grow;
  if (is_same && !is_certain_now) return known;
  LocationRef location = MakeNew(process, address, found);
  process.locations.Put(address, location, window);
  return location;
}

std::optional<JitNamer::Found> JitNamer::Find(const Process& process, Address address,
                                              MonotonicTime when) {
  if (const auto place = process.jit_dump.Find(address, when)) return Found{.place = *place};
  const std::optional<std::string_view> name = process.perf_map.Find(address);
  if (!name) return std::nullopt;
  const std::optional<PerfMap::Function>& tail = process.perf_map.tail();
  return Found{
      .place = {.function = *name, .file = {}},
      .may_grow = process.writer == PerfMap::Writer::kMayWrite && tail && tail->Contains(address)};
}

void JitNamer::ReadJitDump(ProcessKey key, Process& process) {
  const Result<UniqueFd> fd = source_.OpenJitDump(key);
  if (!fd) return;
  JitDump& dump = process.jit_dump;
  const uint64_t bad_before = dump.bad_records();
  const uint64_t passed_over_before = dump.passed_over();
  const auto read = [&](int file, const JitDumpPart& part, OnJitCode on_code) {
    return source_.ReadJitDump(key, file, part, on_code);
  };
  const bool has_stopped = process.writer == PerfMap::Writer::kGone;
  // What was read before an error is good; without a jitdump the addresses count as unresolved.
  const MonotonicTime until = After(MonotonicNow(), kMostTime);
  Result<void> updated = dump.Update(fd->get(), has_stopped, MonotonicNow(), read);
  while (updated && dump.has_more() && source_.HasTime() && MonotonicNow() < until) {
    updated = dump.Update(fd->get(), has_stopped, MonotonicNow(), read);
  }
  if (!updated && !process.jit_dump_is_refused) ++counts_.jit_dumps_refused;
  process.jit_dump_is_refused = !updated;
  counts_.bad_jit_dump_records += dump.bad_records() - bad_before;
  counts_.jit_dump_passed_over += dump.passed_over() - passed_over_before;
  DropCleared(dump.TakeCleared(), process);
}

void JitNamer::DropCleared(const ClearedCode& cleared, Process& process) {
  if (cleared.empty()) return;
  process.locations.DropIf([&](Address address) { return cleared.Contains(address); });
}

void JitNamer::ReadPerfMap(ProcessKey key, Process& process) {
  const Result<UniqueFd> fd = source_.OpenPerfMap(key);
  if (!fd) return;
  PerfMap& map = process.perf_map;
  const std::optional<PerfMap::Function> tail = map.tail();
  const uint64_t bad_before = map.bad_lines();
  const uint64_t passed_over_before = map.passed_over();
  // What was read before an error is good; without a map the addresses count as unresolved.
  const auto read = [this](int file, const PerfMapPart& part, OnPerfMapFunction on_function) {
    return source_.ReadPerfMap(file, part, on_function);
  };
  const MonotonicTime until = After(MonotonicNow(), kMostTime);
  Result<void> updated = map.Update(fd->get(), process.writer, read);
  while (updated && map.has_more() && source_.HasTime() && MonotonicNow() < until) {
    updated = map.Update(fd->get(), process.writer, read);
  }
  if (tail) {  // What it named was a part of a name, if the line has grown.
    process.locations.DropIf([&](Address a) { return tail->Contains(a) && !map.Find(a); });
  }
  counts_.bad_perf_map_lines += map.bad_lines() - bad_before;
  counts_.perf_map_passed_over += map.passed_over() - passed_over_before;
  DropCleared(map.TakeCleared(), process);
}

LocationRef JitNamer::MakeNew(const Process& process, Address address,
                              const std::optional<Found>& found) {
  ++counts_.locations;
  if (!found) {
    const bool is_jit = !process.perf_map.empty() || !process.jit_dump.empty();
    counts_.Add(is_jit ? Unresolved::kJit : Unresolved::kUnmapped);
    return UnknownLocation(address.value());
  }
  Line line = SameName(std::string(found->place.function));
  line.file = std::string(found->place.file);
  line.line = found->place.line;
  const NameQuality quality = found->may_grow ? NameQuality::kMadeUp : NameQuality::kSymbol;
  return MakeLocation(CodeOrigin::kJit, jit_, address.value(), std::move(line), quality);
}

void JitNamer::EndWindow(uint32_t unused_since) {
  absl::erase_if(processes_, [=](const auto& p) { return p.second.window < unused_since; });
  for (auto& [key, process] : processes_) process.locations.DropUnusedSince(unused_since);
  DropOverBudget();
}

void JitNamer::DropOverBudget() {
  size_t perf_maps = 0;
  size_t jit_dumps = 0;
  std::vector<Process*> by_use;
  for (auto& [key, process] : processes_) {
    perf_maps += process.perf_map.bytes();
    jit_dumps += process.jit_dump.bytes();
    by_use.push_back(&process);
  }
  std::ranges::sort(by_use, {}, &Process::window);
  for (Process* const process : by_use) {
    if (perf_maps > budget_.perf_map_bytes && !process->perf_map.empty()) {
      perf_maps -= process->perf_map.bytes();
      process->perf_map = PerfMap(OfOne(budget_.perf_map_bytes));
      ++counts_.perf_maps_dropped;
    }
    if (jit_dumps > budget_.jit_dump_bytes && !process->jit_dump.empty()) {
      jit_dumps -= process->jit_dump.bytes();
      process->jit_dump = JitDump(OfOne(budget_.jit_dump_bytes));
      ++counts_.jit_dumps_dropped;
    }
  }
}

}  // namespace pyrometer
