// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "symbolize/jit_namer.h"
#include "symbolize/named_location.h"
#include "symbolize/object_namer.h"

namespace pyrometer {
namespace {

// Sorts them, too. Then only the last range that starts at or below a frame can contain it.
void MergeOverlapping(std::vector<FrameRange>& ranges) {
  std::ranges::sort(ranges, {}, &FrameRange::first);
  size_t kept = 0;
  for (const FrameRange range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].last) {
      ranges[kept - 1].last = std::max(ranges[kept - 1].last, range.last);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

// When each stack was met the last time; one that no sample has, when the window ended.
std::vector<MonotonicTime> LastSeen(const Window& window) {
  std::vector<MonotonicTime> seen(window.stacks.size());
  for (const Sample& sample : window.samples) {
    seen[sample.stack] = std::max(seen[sample.stack], sample.last_seen);
  }
  std::ranges::replace(seen, MonotonicTime(0), window.end);
  return seen;
}

class NoNamer : public FrameNamer {
 public:
  explicit NoNamer(SymbolizerCounts& counts) : counts_(counts) {}

  LocationRef Name(Frame frame, ProcessKey /*process*/, uint32_t /*window*/) override {
    counts_.Add(Unresolved::kOtherKind);
    return UnknownLocation(frame.bits());
  }
  void EndWindow(uint32_t /*unused_since*/) override {}

 private:
  SymbolizerCounts& counts_;
};

}  // namespace

Symbolizer::Symbolizer(const Sources& sources, KernelSymbols kernel, Options options)
    : options_(std::move(options)) {
  auto kernel_namer = std::make_unique<KernelNamer>(std::move(kernel), options_.kernel, counts_);
  kernel_ = kernel_namer.get();
  for (std::unique_ptr<FrameNamer>& namer : namers_) namer = std::make_unique<NoNamer>(counts_);
  Register(Frame::Kind::kKernel, std::move(kernel_namer));
  Register(Frame::Kind::kObject,
           std::make_unique<ObjectNamer>(sources.objects, options_.symbol_tables, options_.naming,
                                         counts_));
  const JitNamer::Budgets budgets{.perf_maps = options_.perf_maps, .dumps = options_.jit_dumps};
  Register(Frame::Kind::kUserAddress,
           std::make_unique<JitNamer>(sources.perf_maps, sources.jit_dumps, budgets, counts_));
}

void Symbolizer::Register(Frame::Kind kind, std::unique_ptr<FrameNamer> namer) {
  namers_[static_cast<size_t>(kind)] = std::move(namer);
}

NamedWindow Symbolizer::Name(Window window) {
  ++window_;
  ForgetChangedNames(window.end);
  NamedWindow named{.window = std::move(window), .locations = {}};
  named.locations.reserve(named.window.frames.size());
  for (const Frame frame : named.window.frames) {
    named.locations.push_back(locations_.Find(frame, window_));
  }
  NameNewFrames(named);
  for (const Stack& stack : named.window.stacks) {
    if (stack.process) ExpectFramesOf(*stack.process, stack, named.window.frames);
  }
  const std::vector<MonotonicTime> seen = LastSeen(named.window);
  for (size_t i = 0; i < seen.size(); ++i) {
    const Stack& stack = named.window.stacks[i];
    if (stack.process) NameFramesOf(*stack.process, stack, seen[i], named);
  }
  // Left are frames that mean something in a process only, of stacks that are nobody's.
  for (size_t i = 0; i < named.locations.size(); ++i) {
    if (named.locations[i] != nullptr) continue;
    named.locations[i] = UnknownLocation(named.window.frames[i].bits());
  }
  EndWindow();
  return named;
}

// In the order of frames, which is that of objects and of addresses in them.
void Symbolizer::NameNewFrames(NamedWindow& named) {
  const std::vector<Frame>& frames = named.window.frames;
  std::vector<Frame> fresh;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (named.locations[i] != nullptr || NamerOf(frames[i]).IsPerProcess()) continue;
    fresh.push_back(frames[i]);
  }
  if (fresh.empty()) return;
  std::ranges::sort(fresh);
  // Not std::ranges::unique: clang 14, which checks and fuzzes this code, cannot compile subranges.
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  for (const Frame frame : fresh) {
    ++counts_.locations;
    locations_.Put(frame, NamerOf(frame).Name(frame, ProcessKey(), window_), window_);
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    if (named.locations[i] == nullptr) named.locations[i] = locations_.Find(frames[i], window_);
  }
}

void Symbolizer::ExpectFramesOf(ProcessKey process, const Stack& stack,
                                const std::vector<Frame>& frames) {
  const FrameNamer* last = nullptr;
  const size_t count = size_t{stack.kernel_frames} + stack.user_frames;
  for (size_t i = stack.first_frame; i < stack.first_frame + count; ++i) {
    FrameNamer& namer = NamerOf(frames[i]);
    if (!namer.IsPerProcess() || &namer == last) continue;
    namer.Expect(process, window_);
    last = &namer;
  }
}

void Symbolizer::NameFramesOf(ProcessKey process, const Stack& stack, MonotonicTime seen,
                              NamedWindow& named) {
  for (const std::unique_ptr<FrameNamer>& namer : namers_) {
    if (namer->IsPerProcess()) namer->At(seen);
  }
  const size_t count = size_t{stack.kernel_frames} + stack.user_frames;
  for (size_t i = stack.first_frame; i < stack.first_frame + count; ++i) {
    const Frame frame = named.window.frames[i];
    FrameNamer& namer = NamerOf(frame);
    if (namer.IsPerProcess()) named.locations[i] = namer.Name(frame, process, window_);
  }
}

void Symbolizer::Apply(const KernelSymbolEvent& event) {
  kernel_->Apply(event);
}

void Symbolizer::ForgetChangedNames(MonotonicTime end) {
  std::vector<FrameRange> changed;
  for (const std::unique_ptr<FrameNamer>& namer : namers_) {
    std::ranges::copy(namer->BeginWindow(window_, end), std::back_inserter(changed));
  }
  if (changed.empty()) return;
  MergeOverlapping(changed);
  locations_.DropIf([&](Frame frame) {
    const auto next = std::ranges::upper_bound(changed, frame, {}, &FrameRange::first);
    return next != changed.begin() && frame <= std::prev(next)->last;
  });
}

void Symbolizer::EndWindow() {
  const uint32_t unused_since =
      window_ > options_.keep_windows ? window_ - options_.keep_windows : 0;
  locations_.DropUnusedSince(unused_since);
  for (const std::unique_ptr<FrameNamer>& namer : namers_) namer->EndWindow(unused_since);
}

}  // namespace pyrometer
