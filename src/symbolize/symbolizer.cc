// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <algorithm>

#include "symbolize/named_location.h"

namespace pyrometer {
namespace {

// Sorts them, too. Then only the last range that starts at or below an address can contain it.
void MergeOverlapping(std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
  std::ranges::sort(ranges);
  size_t kept = 0;
  for (const auto& [start, end] : ranges) {
    if (kept > 0 && start <= ranges[kept - 1].second) {
      ranges[kept - 1].second = std::max(ranges[kept - 1].second, end);
    } else {
      ranges[kept++] = {start, end};
    }
  }
  ranges.resize(kept);
}

}  // namespace

Symbolizer::Symbolizer(ObjectSource& objects, PerfMapSource& perf_maps, KernelSymbols kernel,
                       Options options)
    : options_(options),
      objects_(objects, options.symbol_table_bytes, counts_),
      kernel_(std::move(kernel), counts_),
      jit_(perf_maps, options.perf_map_bytes, counts_) {}

NamedWindow Symbolizer::Name(Window window) {
  ++window_;
  ForgetReplacedKernelCode();
  NameNewFrames(window.frames);
  NamedWindow named{.window = std::move(window), .locations = {}};
  named.locations.reserve(named.window.frames.size());
  for (const Frame frame : named.window.frames) {
    named.locations.push_back(locations_.Find(frame, window_));
  }
  for (const Stack& stack : named.window.stacks) {
    if (stack.process) NameUserAddresses(named, stack, *stack.process);
  }
  // Left are user addresses of stacks that are nobody's, for no sample refers to them.
  for (size_t i = 0; i < named.locations.size(); ++i) {
    if (named.locations[i] != nullptr) continue;
    named.locations[i] = UnknownLocation(named.window.frames[i].bits());
  }
  EndWindow();
  return named;
}

// In the order of frames, which is that of objects and of addresses in them.
void Symbolizer::NameNewFrames(const std::vector<Frame>& frames) {
  std::vector<Frame> fresh;
  for (const Frame frame : frames) {
    if (frame.kind() == Frame::Kind::kUserAddress) continue;
    if (locations_.Find(frame, window_) == nullptr) fresh.push_back(frame);
  }
  std::ranges::sort(fresh);
  // Not std::ranges::unique: clang 14, which checks and fuzzes this code, cannot compile subranges.
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  for (const Frame frame : fresh) {
    ++counts_.locations;
    locations_.Put(frame, NameFrame(frame), window_);
  }
}

LocationRef Symbolizer::NameFrame(Frame frame) {
  switch (frame.kind()) {
    case Frame::Kind::kObject:
      return objects_.Name(frame, window_);
    case Frame::Kind::kKernel:
      return kernel_.Name(frame.kernel_address());
    case Frame::Kind::kUserAddress:
      break;
  }
  counts_.Add(Unresolved::kUnmapped);
  return UnknownLocation(frame.bits());
}

void Symbolizer::NameUserAddresses(NamedWindow& named, const Stack& stack, ProcessKey process) {
  const size_t count = size_t{stack.kernel_frames} + stack.user_frames;
  for (size_t i = stack.first_frame; i < stack.first_frame + count; ++i) {
    const Frame frame = named.window.frames[i];
    if (frame.kind() != Frame::Kind::kUserAddress) continue;
    named.locations[i] = jit_.Name(process, frame.user_address(), window_);
  }
}

void Symbolizer::Apply(const KernelSymbolEvent& event) {
  kernel_.Apply(event);
  if (event.removed) return;
  const uint64_t start = event.address.value();
  replaced_.emplace_back(start, start + std::min<uint64_t>(event.size, ~start));
}

void Symbolizer::ForgetReplacedKernelCode() {
  if (replaced_.empty()) return;
  MergeOverlapping(replaced_);
  locations_.DropIf([this](Frame frame) {
    if (frame.kind() != Frame::Kind::kKernel) return false;
    const auto next = std::ranges::upper_bound(replaced_, frame.bits(), {},
                                               [](const auto& range) { return range.first; });
    return next != replaced_.begin() && frame.bits() < std::prev(next)->second;
  });
  replaced_.clear();
}

void Symbolizer::EndWindow() {
  const uint32_t unused_since =
      window_ > options_.keep_windows ? window_ - options_.keep_windows : 0;
  locations_.DropUnusedSince(unused_since);
  objects_.EndWindow(unused_since);
  jit_.EndWindow(unused_since);
  kernel_.ForgetRemoved();
}

}  // namespace pyrometer
