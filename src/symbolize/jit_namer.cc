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

JitNamer::JitNamer(PerfMapSource& source, const PerfMaps::Budget& budget, SymbolizerCounts& counts)
    : source_(source), counts_(counts), perf_maps_(source, budget, counts), jit_(JitObject()) {}

void JitNamer::Expect(ProcessKey key, uint32_t window) {
  LookAt(key, window);
}

// Of all that a window needs, none is kept open: they may be many, and some are copies.
JitNamer::Process& JitNamer::LookAt(ProcessKey key, uint32_t window) {
  const auto [entry, added] = processes_.try_emplace(key);
  Process& process = entry->second;
  if (!added && process.perf_map->window == window) return process;
  process.perf_map = &perf_maps_.Need(key, window);
  // Asked first, since it might write a last time while the file is read.
  process.writer = source_.HasEnded(key) ? PerfMap::Writer::kGone : PerfMap::Writer::kMayWrite;
  process.unread = {};
  const Result<UniqueFd> fd = source_.Open(key);
  process.is_due = fd && perf_maps_.Look(*process.perf_map, fd->get());
  if (!process.is_due) process.perf_map->is_behind = false;
  return process;
}

LocationRef JitNamer::Name(Frame frame, ProcessKey key, uint32_t window) {
  const Address address = frame.user_address();
  Process& process = LookAt(key, window);
  if (std::exchange(process.is_due, false)) ReadPerfMap(key, process);
  if (process.perf_map->is_behind) return NameUnread(process, address);
  const std::optional<std::string_view> name = process.perf_map->map.Find(address);
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
  if (LocationRef known = process.unread.Find(address, process.perf_map->window)) return known;
  ++counts_.locations;
  counts_.Add(Unresolved::kNotReady);
  LocationRef location = UnknownLocation(address.value());
  process.unread.Put(address, location, process.perf_map->window);
  return location;
}

bool JitNamer::MayGrow(const Process& process, Address address) {
  const std::optional<PerfMapFunction>& tail = process.perf_map->map.tail();
  return process.writer == PerfMap::Writer::kMayWrite && tail && tail->Contains(address);
}

void JitNamer::ReadPerfMap(ProcessKey key, Process& process) {
  const Result<UniqueFd> fd = source_.Open(key);
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

LocationRef JitNamer::MakeNew(const Process& process, Address address) {
  ++counts_.locations;
  if (const auto name = process.perf_map->map.Find(address)) {
    if (MayGrow(process, address)) {
      return MadeUpLocation(CodeOrigin::kJit, jit_, address.value(), std::string(*name));
    }
    return MakeLocation(CodeOrigin::kJit, jit_, address.value(), SameName(std::string(*name)));
  }
  counts_.Add(process.perf_map->map.empty() ? Unresolved::kUnmapped : Unresolved::kJit);
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
}

}  // namespace pyrometer
