// SPDX-License-Identifier: Apache-2.0
#include "process/window_resolver.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

// A stack as one program sees it.
struct View {
  std::vector<Frame> frames;
  Stack stack;  // without first_frame

  bool Is(const Window& window, uint32_t index) const {
    const Stack& other = window.stacks[index];
    return other.user_frames == stack.user_frames && other.end == stack.end &&
           std::ranges::equal(window.FramesOf(other), frames);
  }
};

class Resolver {
 public:
  Resolver(Window window, const ProcessTable& processes, ResolveTally& tally)
      : window_(std::move(window)), processes_(processes), tally_(tally) {}

  Window Run() && {
    FindStacksWithAddresses();
    for (Sample& sample : window_.samples) {
      if (sample.stack < has_addresses_.size() && has_addresses_[sample.stack]) Resolve(sample);
    }
    return std::move(window_);
  }

 private:
  void FindStacksWithAddresses() {
    has_addresses_.resize(window_.stacks.size());
    views_.resize(window_.stacks.size());
    for (size_t i = 0; i < window_.stacks.size(); ++i) {
      const std::span<const Frame> frames = window_.FramesOf(window_.stacks[i]);
      has_addresses_[i] =
          std::ranges::any_of(frames.subspan(window_.stacks[i].kernel_frames), IsUserAddress);
      if (has_addresses_[i]) {
        views_[i].original = originals_.size();
        originals_.push_back({{frames.begin(), frames.end()}, window_.stacks[i]});
      }
    }
  }

  static bool IsUserAddress(Frame frame) { return frame.kind() == Frame::Kind::kUserAddress; }

  void Resolve(Sample& sample) {
    const View& original = originals_[views_[sample.stack].original];
    const Program* program = processes_.Find(sample.process, sample.exec, sample.first_seen);
    if (program == nullptr) ++tally_.unknown_process_samples;
    const View seen = program == nullptr ? original : SeenBy(*program, sample, original);
    sample.stack = Place(sample.stack, seen);
  }

  View SeenBy(const Program& program, const Sample& sample, const View& original) {
    View seen;
    seen.stack = original.stack;
    seen.frames.reserve(original.frames.size());
    for (size_t i = 0; i < original.frames.size(); ++i) {
      const Frame frame = original.frames[i];
      if (i < original.stack.kernel_frames || !IsUserAddress(frame)) {
        seen.frames.push_back(frame);
        continue;
      }
      const std::optional<ObjectMapping> mapping =
          program.space.At(frame.user_address(), sample.first_seen);
      const bool is_leaf = i == original.stack.kernel_frames;
      if (!mapping && program.complete && (!is_leaf || original.stack.kernel_frames > 0)) {
        Cut(seen.stack, i);
        break;
      }
      seen.frames.push_back(Normalize(frame, mapping));
    }
    return seen;
  }

  // A tick in the kernel whose user pc is mapped nowhere hit the middle of an exec: the registers
  // are still those of the old program, and there is no user stack yet. Elsewhere in a stack, what
  // lies in no mapping is no return address.
  void Cut(Stack& stack, size_t at) {
    stack.user_frames = static_cast<uint16_t>(at - stack.kernel_frames);
    stack.end = stack.user_frames == 0 ? StackEnd::kNoUserStack : StackEnd::kBadReturnAddress;
    if (stack.user_frames > 0) ++tally_.cut_stacks;
  }

  Frame Normalize(Frame frame, const std::optional<ObjectMapping>& mapping) {
    if (!mapping || mapping->object == ObjectId(0)) return frame;
    const ElfAddress address = mapping->ToElfAddress(frame.user_address());
    if (!Frame::Fits(address)) return frame;
    ++tally_.resolved_frames;
    return Frame::Object(mapping->object, address);
  }

  // The index of a stack that is `seen`: that of a sample that saw the same in it, or the
  // stack's own if nobody has it yet, or a new one.
  uint32_t Place(uint32_t index, const View& seen) {
    Views& views = views_[index];
    for (const uint32_t known : views.indices) {
      if (seen.Is(window_, known)) return known;
    }
    if (views.indices.empty()) {
      Stack& stack = window_.stacks[index];
      std::ranges::copy(seen.frames, window_.frames.begin() + stack.first_frame);
      stack.user_frames = seen.stack.user_frames;
      stack.end = seen.stack.end;
      views.indices.push_back(index);
      return index;
    }
    Stack stack = seen.stack;
    stack.first_frame = static_cast<uint32_t>(window_.frames.size());
    window_.frames.insert(window_.frames.end(), seen.frames.begin(), seen.frames.end());
    window_.stacks.push_back(stack);
    views.indices.push_back(static_cast<uint32_t>(window_.stacks.size() - 1));
    return views.indices.back();
  }

  struct Views {
    size_t original = 0;            // index into originals_
    std::vector<uint32_t> indices;  // into Window::stacks
  };

  Window window_;
  const ProcessTable& processes_;
  ResolveTally& tally_;
  std::vector<bool> has_addresses_;  // by stack, of those the window came with
  std::vector<Views> views_;         // likewise
  std::vector<View> originals_;      // of stacks with user addresses
};

}  // namespace

Window ResolveWindow(Window window, const ProcessTable& processes, ResolveTally& tally) {
  return Resolver(std::move(window), processes, tally).Run();
}

}  // namespace pyrometer
