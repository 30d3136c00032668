// SPDX-License-Identifier: Apache-2.0
#include "profiler/remembered_frames.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace pyrometer {
namespace {

// What of `all` is of `process`.
void Copy(ProcessKey process, const RememberedFrames::JitNames& all,
          RememberedFrames::JitNames& names) {
  const auto perf_map = all.perf_maps.find(process);
  if (perf_map != all.perf_maps.end()) names.perf_maps.insert(*perf_map);
  const auto dumps = all.jit_dumps.find(process);
  if (dumps != all.jit_dumps.end()) names.jit_dumps.insert(*dumps);
}

}  // namespace

// No namer knows the function, or nobody the line.
bool RememberedFrames::MayGetBetter(Frame::Kind kind, const Location& location) const {
  if (location.quality == NameQuality::kMadeUp) return true;
  return debug_info_ && kind == Frame::Kind::kObject && location.lines.front().file.empty();
}

void RememberedFrames::Note(const NamedWindow& named, const Objects& objects,
                            const JitNames& names) {
  const Window& window = named.window;
  ForgetEarlierPrograms(window);
  std::vector<bool> is_done(window.stacks.size());
  for (const Sample& sample : window.samples) {
    if (is_done[sample.stack]) continue;
    is_done[sample.stack] = true;
    const Stack& stack = window.stacks[sample.stack];
    const size_t first = size_t{stack.first_frame} + stack.kernel_frames;
    for (size_t i = first; i < first + stack.user_frames; ++i) {
      const Frame frame = window.frames[i];
      if (!MayGetBetter(frame.kind(), *named.locations[i])) continue;
      if (frame.kind() == Frame::Kind::kObject) NoteObjectFrame(frame, window.end, objects);
      if (frame.kind() != Frame::Kind::kUserAddress || address_count_ >= kMostFrames) continue;
      Addresses* const addresses = AddressesOf(sample, names);
      if (addresses == nullptr) continue;
      address_count_ += addresses->frames.try_emplace(frame, window.end).second ? 1 : 0;
    }
  }
}

void RememberedFrames::ForgetEarlierPrograms(const Window& window) {
  if (addresses_.empty()) return;
  for (const Sample& sample : window.samples) {
    const auto known = addresses_.find(sample.process);
    if (known != addresses_.end() && known->second.exec != sample.exec) Erase(sample.process);
  }
}

void RememberedFrames::Erase(ProcessKey process) {
  const auto known = addresses_.find(process);
  address_count_ -= known->second.frames.size();
  addresses_.erase(known);
}

void RememberedFrames::NoteObjectFrame(Frame frame, MonotonicTime when, const Objects& objects) {
  const auto object = objects.find(frame.object());
  if (object == objects.end()) return;
  const auto known = objects_.find(frame.object());
  if (known != objects_.end() && known->second != object->second.info) {  // its id is another's now
    absl::erase_if(in_objects_, [=](const auto& f) { return f.first.object() == frame.object(); });
    objects_.erase(known);
  }
  if (in_objects_.size() >= kMostFrames) return;
  objects_.insert_or_assign(frame.object(), object->second.info);
  in_objects_.try_emplace(frame, when);
}

RememberedFrames::Addresses* RememberedFrames::AddressesOf(const Sample& sample,
                                                           const JitNames& names) {
  const auto known = addresses_.find(sample.process);
  if (known != addresses_.end()) return &known->second;
  if (addresses_.size() >= kMostPrograms) return nullptr;
  Addresses addresses{.exec = sample.exec};
  Copy(sample.process, names, addresses.names);
  const auto inherited = names.inherited.find(sample.process);
  if (inherited != names.inherited.end()) {
    addresses.names.inherited.insert(*inherited);
    for (const ProcessKey& from : inherited->second) Copy(from, names, addresses.names);
  }
  if (addresses.names.perf_maps.empty() && addresses.names.jit_dumps.empty()) return nullptr;
  return &addresses_.emplace(sample.process, std::move(addresses)).first->second;
}

RememberedFrames::Added RememberedFrames::AddTo(ResolvedWindow& resolved) {
  Window& window = resolved.window;
  ForgetEarlierPrograms(window);
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
  for (const auto& [process, addresses] : addresses_) {
    const auto& [perf_maps, inherited, jit_dumps] = addresses.names;
    resolved.perf_maps.insert(perf_maps.begin(), perf_maps.end());
    resolved.inherited.insert(inherited.begin(), inherited.end());
    resolved.jit_dumps.insert(jit_dumps.begin(), jit_dumps.end());
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
