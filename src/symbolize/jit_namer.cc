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

std::shared_ptr<const CodeObject> JitObject() {
  auto object = std::make_shared<CodeObject>();
  object->path = "[jit]";
  object->has_functions = true;
  return object;
}

}  // namespace

JitNamer::JitNamer(PerfMapSource& source, size_t budget_bytes, SymbolizerCounts& counts)
    : source_(source), budget_(budget_bytes), counts_(counts), jit_(JitObject()) {}

LocationRef JitNamer::Name(Frame frame, ProcessKey key, uint32_t window) {
  const Address address = frame.user_address();
  const auto [entry, added] = processes_.try_emplace(key);
  Process& process = entry->second;
  if (added || process.window != window) {
    process.window = window;
    ReadPerfMap(key, process);
  }
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

bool JitNamer::MayGrow(const Process& process, Address address) {
  const std::optional<PerfMap::Function>& tail = process.perf_map.tail();
  return process.writer == PerfMap::Writer::kMayWrite && tail && tail->Contains(address);
}

void JitNamer::ReadPerfMap(ProcessKey key, Process& process) {
  // Asked first, since it might write a last time while the file is read.
  process.writer = source_.HasEnded(key) ? PerfMap::Writer::kGone : PerfMap::Writer::kMayWrite;
  const Result<UniqueFd> fd = source_.Open(key);
  if (!fd) return;
  PerfMap& map = process.perf_map;
  const std::optional<PerfMap::Function> tail = map.tail();
  const uint64_t bad_before = map.bad_lines();
  // What was read before an error is good; without a map the addresses count as unresolved.
  static_cast<void>(map.Update(fd->get(), process.writer));
  if (tail) {  // What it named was a part of a name, if the line has grown.
    process.locations.DropIf([&](Address a) { return tail->Contains(a) && !map.Find(a); });
  }
  const uint64_t bad = map.bad_lines();
  counts_.bad_perf_map_lines += bad >= bad_before ? bad - bad_before : bad;
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
  size_t bytes = 0;
  std::vector<Process*> by_use;
  for (auto& [key, process] : processes_) {
    process.locations.DropUnusedSince(unused_since);
    bytes += process.perf_map.bytes();
    if (!process.perf_map.empty()) by_use.push_back(&process);
  }
  std::ranges::sort(by_use, {}, &Process::window);
  for (Process* const process : by_use) {
    if (bytes <= budget_) break;
    bytes -= process->perf_map.bytes();
    process->perf_map = PerfMap();
  }
}

}  // namespace pyrometer
