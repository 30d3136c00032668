// SPDX-License-Identifier: Apache-2.0
#include "profiler/remembered_frames.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace pyrometer {
namespace {

// No namer knows the function, or nobody the line.
bool MayGetBetter(Frame::Kind kind, const Location& location) {
  if (location.quality == NameQuality::kMadeUp) return true;
  return kind == Frame::Kind::kObject && location.lines.front().file.empty();
}

}  // namespace

void RememberedFrames::Note(const NamedWindow& named, const Objects& objects,
                            const JitNames& names) {
  const Window& window = named.window;
  std::vector<bool> is_done(window.stacks.size());  // but for user addresses, which are somebody's
  for (const Sample& sample : window.samples) {
    const Stack& stack = window.stacks[sample.stack];
    if (is_done[sample.stack] && !stack.process) continue;
    is_done[sample.stack] = true;
    const size_t first = size_t{stack.first_frame} + stack.kernel_frames;
    for (size_t i = first; i < first + stack.user_frames; ++i) {
      const Frame frame = window.frames[i];
      if (!MayGetBetter(frame.kind(), *named.locations[i])) continue;
      if (frame.kind() == Frame::Kind::kObject) NoteObjectFrame(frame, window.end, objects);
      if (frame.kind() == Frame::Kind::kUserAddress) {
        NoteUserAddress(frame, window.end, sample, names);
      }
    }
  }
}

void RememberedFrames::NoteObjectFrame(Frame frame, MonotonicTime when, const Objects& objects) {
  const auto object = objects.find(frame.object());
  if (object == objects.end()) return;
  std::shared_ptr<const ObjectInfo>& info = objects_[frame.object()];
  if (info != object->second.info && info != nullptr) {  // its id is another's now
    count_ -= absl::erase_if(in_objects_,
                             [=](const auto& f) { return f.first.object() == frame.object(); });
  }
  info = object->second.info;
  Insert(frame, when, in_objects_);
}

void RememberedFrames::NoteUserAddress(Frame frame, MonotonicTime when, const Sample& sample,
                                       const JitNames& names) {
  bool is_kept = Keep(sample.process, names);
  const auto inherited = names.inherited.find(sample.process);
  if (inherited != names.inherited.end()) {
    for (const ProcessKey& from : inherited->second) is_kept |= Keep(from, names);
    names_.inherited.insert_or_assign(sample.process, inherited->second);
  }
  if (!is_kept) return;
  Addresses& addresses = addresses_[sample.process];
  if (addresses.exec != sample.exec) {
    count_ -= addresses.frames.size();
    addresses = {.exec = sample.exec, .frames = {}};
  }
  Insert(frame, when, addresses.frames);
}

bool RememberedFrames::Keep(ProcessKey process, const JitNames& names) {
  const auto perf_map = names.perf_maps.find(process);
  const auto dumps = names.jit_dumps.find(process);
  const bool has_any = perf_map != names.perf_maps.end() || dumps != names.jit_dumps.end();
  const bool is_known = names_.perf_maps.contains(process) || names_.jit_dumps.contains(process);
  const size_t processes = names_.perf_maps.size() + names_.jit_dumps.size();
  if (!has_any || (!is_known && processes >= kMostProcesses)) return false;
  if (perf_map != names.perf_maps.end()) {
    names_.perf_maps.insert_or_assign(process, perf_map->second);
  }
  if (dumps != names.jit_dumps.end()) names_.jit_dumps.insert_or_assign(process, dumps->second);
  return true;
}

void RememberedFrames::Insert(Frame frame, MonotonicTime when, Frames& frames) {
  if (count_ < kMostFrames && frames.try_emplace(frame, when).second) ++count_;
}

RememberedFrames::Added RememberedFrames::AddTo(ResolvedWindow& resolved) const {
  Window& window = resolved.window;
  Added added{.first_frame = window.frames.size(), .first_stack = window.stacks.size()};
  for (const auto& [id, info] : objects_) {
    // Without a file: what was read while there was one names it. One that is another's id stays.
    resolved.objects.try_emplace(id, ObjectRef{.info = info, .file = nullptr});
  }
  Frames frames;
  for (const auto& [frame, when] : in_objects_) {
    if (resolved.objects.at(frame.object()).info == objects_.at(frame.object())) {
      frames.emplace(frame, when);
    }
  }
  AddStacks(frames, {}, window, added);
  for (const auto& [process, perf_map] : names_.perf_maps) {
    resolved.perf_maps.try_emplace(process, perf_map);
  }
  for (const auto& [process, dumps] : names_.jit_dumps) {
    resolved.jit_dumps.try_emplace(process, dumps);
  }
  for (const auto& [process, from] : names_.inherited) {
    resolved.inherited.try_emplace(process, from);
  }
  for (const auto& [process, addresses] : addresses_) {
    AddStacks(addresses.frames, {process, addresses.exec}, window, added);
  }
  return added;
}

void RememberedFrames::AddStacks(const Frames& frames, const Program& program, Window& window,
                                 Added& added) {
  constexpr size_t kMost = std::numeric_limits<decltype(Stack::user_frames)>::max();
  const std::vector<std::pair<Frame, MonotonicTime>> all(frames.begin(), frames.end());
  for (size_t begin = 0; begin < all.size(); begin += kMost) {
    const size_t size = std::min(kMost, all.size() - begin);
    Stack stack{.first_frame = static_cast<uint32_t>(window.frames.size()),
                .user_frames = static_cast<uint16_t>(size)};
    if (program.process != ProcessKey()) stack.process = program.process;
    window.stacks.push_back(stack);
    for (size_t i = begin; i < begin + size; ++i) {
      window.frames.push_back(all[i].first);
      added.seen.push_back(all[i].second);
    }
    added.programs.push_back(program);
  }
}

std::vector<Renamed> RememberedFrames::TakeOut(const Added& added, NamedWindow& named) {
  Window& window = named.window;
  std::vector<Renamed> renamed;
  renamed.reserve(window.frames.size() - added.first_frame);
  for (size_t i = added.first_stack; i < window.stacks.size(); ++i) {
    const auto& [process, exec] = added.programs[i - added.first_stack];
    const size_t first = window.stacks[i].first_frame;
    for (size_t at = first; at < first + window.stacks[i].user_frames; ++at) {
      if (named.locations[at]->since > added.seen[at - added.first_frame]) continue;
      renamed.push_back({.frame = window.frames[at],
                         .process = process,
                         .exec = exec,
                         .location = std::move(named.locations[at])});
    }
  }
  window.stacks.resize(added.first_stack);
  window.frames.resize(added.first_frame);
  named.locations.resize(added.first_frame);
  return renamed;
}

}  // namespace pyrometer
