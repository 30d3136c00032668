// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_namer.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "symbolize/named_location.h"

namespace pyrometer {
namespace {

std::shared_ptr<const CodeObject> JitObject() {
  auto object = std::make_shared<CodeObject>();
  object->path = "[jit]";
  object->has_functions = true;
  return object;
}

}  // namespace

JitNamer::JitNamer(PerfMapSource& perf_maps, JitDumpSource& dumps, const Budgets& budgets,
                   SymbolizerCounts& counts)
    : source_(perf_maps),
      dump_source_(dumps),
      counts_(counts),
      perf_maps_(perf_maps, budgets.perf_maps, counts),
      dumps_(dumps, budgets.dumps, counts),
      jit_(JitObject()) {}

std::vector<FrameRange> JitNamer::BeginWindow(uint32_t window, MonotonicTime end) {
  dumps_.BeginWindow(window, end);
  return {};
}

void JitNamer::Expect(ProcessKey key, uint32_t window) {
  LookAt(key, window);
}

// Of all that a window needs, none is kept open: they may be many, and some are copies.
JitNamer::Process& JitNamer::LookAt(ProcessKey key, uint32_t window) {
  const auto [entry, added] = processes_.try_emplace(key);
  Process& process = entry->second;
  if (!added && process.perf_map->window == window) return process;
  process.key = key;
  process.perf_map = &perf_maps_.Need(key, window);
  // Asked first, since it might write a last time while the file is read.
  process.writer = source_.HasEnded(key) ? PerfMap::Writer::kGone : PerfMap::Writer::kMayWrite;
  process.unread = {};
  const Result<UniqueFd> fd = source_.Open(key);
  process.is_due = fd && perf_maps_.Look(*process.perf_map, fd->get());
  if (!process.is_due) process.perf_map->is_behind = false;
  process.dumps = dump_source_.DumpsOf(key);
  process.inherited.clear();
  for (const ProcessKey& from : source_.InheritsFrom(key)) {
    process.inherited.push_back(&LookAt(from, window));
  }
  return process;
}

LocationRef JitNamer::Name(Frame frame, ProcessKey key, uint32_t window) {
  const Address address = frame.user_address();
  Process& process = LookAt(key, window);
  const Found found = Find(process, address);
  if (found.is_behind) return NameUnread(process, address);
  LocationRef known = process.locations.Find(address, window);
  // A name once found holds until another comes: the process, and its file, may be gone by now.
  const bool is_same = known != nullptr && (!found.name || IsSame(found, *known));
  const bool is_certain_now =
      found.name && is_same && known->quality == NameQuality::kMadeUp && !found.may_grow;
  if (is_same && !is_certain_now) return known;
  LocationRef location = MakeNew(found, address);
  process.locations.Put(address, location, window);
  return location;
}

bool JitNamer::IsSame(const Found& found, const Location& known) {
  const Line& line = known.lines.front();
  return line.function == *found.name && line.file == found.file && line.line == found.line;
}

// True if there is no need to look elsewhere, as in the next.
bool JitNamer::FindInDumps(const Process& process, Whose whose, Address address, Found& found) {
  for (const JitDumpSource::Use& use : process.dumps) {
    if (use.is_own() != (whose == Whose::kOwn)) continue;
    const JitDumps::Answer answer = dumps_.Find(use, address, seen_);
    found.is_behind = answer.is_behind;
    found.has_any = true;
    if (answer.is_behind) return true;
    if (!answer.found) continue;
    found.name = answer.found->name;
    found.file = answer.found->file;
    found.line = answer.found->line;
    found.since = answer.found->since;
    return true;
  }
  return false;
}

bool JitNamer::FindInMap(Process& process, Address address, Found& found) {
  if (std::exchange(process.is_due, false)) ReadPerfMap(process);
  const PerfMap& map = process.perf_map->map;
  found.is_behind = process.perf_map->is_behind;
  found.has_any |= !map.empty();
  if (found.is_behind) return true;
  found.name = map.Find(address);
  const std::optional<PerfMapFunction>& tail = map.tail();
  found.may_grow = process.writer == PerfMap::Writer::kMayWrite && tail && tail->Contains(address);
  return found.name.has_value();
}

// What it has announced itself it has made since the fork.
JitNamer::Found JitNamer::Find(Process& process, Address address) {
  Found found;
  if (FindInDumps(process, Whose::kOwn, address, found)) return found;
  if (FindInMap(process, address, found)) return found;
  if (FindInDumps(process, Whose::kInherited, address, found)) return found;
  for (Process* const from : process.inherited) {
    if (FindInMap(*from, address, found)) break;
  }
  return found;
}

LocationRef JitNamer::NameUnread(Process& process, Address address) {
  if (LocationRef known = process.unread.Find(address, process.perf_map->window)) return known;
  ++counts_.locations;
  counts_.Add(Unresolved::kNotReady);
  LocationRef location = UnknownLocation(address.value());
  process.unread.Put(address, location, process.perf_map->window);
  return location;
}

void JitNamer::ReadPerfMap(Process& process) {
  const Result<UniqueFd> fd = source_.Open(process.key);
  if (!fd) {
    process.perf_map->is_behind = false;
    return;
  }
  const PerfMap& map = process.perf_map->map;
  const std::optional<PerfMapFunction> tail = map.tail();
  perf_maps_.Update(*process.perf_map, fd->get(), process.writer);
  // Without a map the addresses count as unresolved.
  process.locations.DropIf([&](Address a) {
    if (map.Find(a)) return false;
    // Other code may have taken its place, without our knowing; or what it named was a part of a
    // name, if the line has grown.
    return map.missing_at() != 0 || (tail && tail->Contains(a));
  });
}

LocationRef JitNamer::MakeNew(const Found& found, Address address) {
  ++counts_.locations;
  if (found.name) {
    const std::string name(*found.name);
    if (found.may_grow) return MadeUpLocation(CodeOrigin::kJit, jit_, address.value(), name);
    Line line = SameName(name);
    line.file = found.file;
    line.line = found.line;
    auto location =
        std::make_shared<Location>(*MakeLocation(CodeOrigin::kJit, jit_, address.value(), line));
    location->since = found.since;
    return location;
  }
  counts_.Add(found.has_any ? Unresolved::kJit : Unresolved::kUnmapped);
  return UnknownLocation(address.value());
}

void JitNamer::EndWindow(uint32_t unused_since) {
  absl::erase_if(processes_,
                 [=](const auto& p) { return p.second.perf_map->window < unused_since; });
  for (auto& [key, process] : processes_) {
    process.locations.DropUnusedSince(unused_since);
    process.unread = {};
  }
  perf_maps_.EndWindow(unused_since);
  dumps_.EndWindow(unused_since);
}

}  // namespace pyrometer
