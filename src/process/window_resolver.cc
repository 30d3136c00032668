// SPDX-License-Identifier: Apache-2.0
#include "process/window_resolver.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

// For a stack that is nobody's alone: the idle task has no user addresses.
constexpr ProcessKey kShared;

bool IsUserAddress(Frame frame) {
  return frame.kind() == Frame::Kind::kUserAddress;
}

// A stack as one program sees it.
struct View {
  std::vector<Frame> frames;
  Stack stack;  // without first_frame

  bool Is(const Window& window, uint32_t index) const {
    const Stack& other = window.stacks[index];
    return other.user_frames == stack.user_frames && other.end == stack.end &&
           std::ranges::equal(window.FramesOf(other), frames);
  }
  bool HasUserAddresses() const { return std::ranges::any_of(frames, IsUserAddress); }
};

class Resolver {
 public:
  Resolver(Window window, const ProcessTable& processes, ResolveTally& tally)
      : window_(std::move(window)), processes_(processes), tally_(tally) {}

  Window Run() && {
    FindStacksWithAddresses();
    for (Sample& sample : window_.samples) {
      if (sample.stack < views_.size()) Resolve(sample);
    }
    return std::move(window_);
  }

 private:
  void FindStacksWithAddresses() {
    views_.resize(window_.stacks.size());
    for (uint32_t i = 0; i < window_.stacks.size(); ++i) {
      const std::span<const Frame> frames = window_.FramesOf(window_.stacks[i]);
      views_[i].has_addresses =
          std::ranges::any_of(frames.subspan(window_.stacks[i].kernel_frames), IsUserAddress);
      if (views_[i].has_addresses) KeepOriginal(i);
    }
  }

  void KeepOriginal(uint32_t stack) {
    const std::span<const Frame> frames = window_.FramesOf(window_.stacks[stack]);
    views_[stack].original = originals_.size();
    originals_.push_back({{frames.begin(), frames.end()}, window_.stacks[stack]});
  }

  // The stack stays that of all samples that see nothing else in it.
  void ShareAsItIs(uint32_t stack) {
    KeepOriginal(stack);
    views_[stack].is_taken = true;
    placed_[{stack, kShared}] = {stack};
  }

  void Resolve(Sample& sample) {
    Views& views = views_[sample.stack];
    if (!views.has_addresses && window_.stacks[sample.stack].user_frames == 0) return;
    const Program* program = processes_.Find(sample.process, sample.exec, sample.first_seen);
    if (!views.has_addresses) {
      if (program == nullptr || !WasOutdated(*program, sample)) return;
      if (!views.is_taken) ShareAsItIs(sample.stack);
    }
    const View& original = originals_[views.original];
    if (program == nullptr) ++tally_.unknown_process_samples;
    View seen = program == nullptr ? original : SeenBy(*program, sample, original);
    if (seen.HasUserAddresses()) seen.stack.process = sample.process;
    sample.stack = Place(sample.stack, seen);
  }

  static Period PeriodOf(const Sample& sample) { return {sample.first_seen, sample.last_seen}; }

  static bool WasOutdated(const Program& program, const Sample& sample) {
    return !sample.looked_up && program.space.WasOutdated(PeriodOf(sample));
  }

  View SeenBy(const Program& program, const Sample& sample, const View& original) {
    View seen;
    seen.stack = original.stack;
    seen.frames.reserve(original.frames.size());
    const bool was_outdated = WasOutdated(program, sample);
    for (size_t i = 0; i < original.frames.size(); ++i) {
      const Frame frame = original.frames[i];
      if (i < original.stack.kernel_frames || !IsUserAddress(frame)) {
        const std::optional<AddressContent> outdated =
            was_outdated ? FindOutdated(program, sample, frame) : std::nullopt;
        seen.frames.push_back(outdated ? Correct(*outdated) : frame);
        if (!outdated) continue;
        CutAbove(seen.stack, i);
        break;
      }
      const AddressContent content =
          program.space.ContentIn(PeriodOf(sample), frame.user_address());
      const bool is_nowhere = program.complete && content.is_sure && !content.mapping;
      const bool is_leaf = i == original.stack.kernel_frames;
      if (is_nowhere && (!is_leaf || original.stack.kernel_frames > 0)) {
        Cut(seen.stack, i);
        break;
      }
      seen.frames.push_back(FrameOf(content));
    }
    return seen;
  }

  static std::optional<AddressContent> FindOutdated(const Program& program, const Sample& sample,
                                                    Frame frame) {
    if (frame.kind() != Frame::Kind::kObject) return std::nullopt;
    return program.space.FindOutdated(frame.object(), frame.offset(), PeriodOf(sample));
  }

  Frame Correct(const AddressContent& outdated) {
    if (outdated.is_sure) ++tally_.outdated_frames;
    return FrameOf(outdated);
  }

  // The caller of the frame at `at` was found with the unwind table of what is not there.
  static void CutAbove(Stack& stack, size_t at) {
    stack.user_frames = static_cast<uint16_t>(at + 1 - stack.kernel_frames);
    stack.end = StackEnd::kNotReady;
  }

  // A tick in the kernel whose user pc is mapped nowhere hit the middle of an exec: the registers
  // are still those of the old program, and there is no user stack yet. Elsewhere in a stack, what
  // lies in no mapping is no return address.
  void Cut(Stack& stack, size_t at) {
    stack.user_frames = static_cast<uint16_t>(at - stack.kernel_frames);
    stack.end = stack.user_frames == 0 ? StackEnd::kNoUserStack : StackEnd::kBadReturnAddress;
    if (stack.user_frames > 0) ++tally_.cut_stacks;
  }

  // The address itself where it is in no object, or where its content cannot be told.
  Frame FrameOf(const AddressContent& content) {
    if (!content.is_sure) ++tally_.doubtful_frames;
    const Frame unnamed = Frame::User(content.address);
    if (!content.mapping || content.mapping->object == ObjectId(0)) return unnamed;
    const ElfAddress address = content.mapping->ToElfAddress(content.address);
    if (!Frame::Fits(address)) return unnamed;
    ++tally_.resolved_frames;
    return Frame::Object(content.mapping->object, address);
  }

  // The index of a stack that is `seen`: that of a sample that saw the same in it, or the
  // stack's own if nobody has it yet, or a new one.
  uint32_t Place(uint32_t index, const View& seen) {
    std::vector<uint32_t>& placed = placed_[{index, seen.stack.process.value_or(kShared)}];
    for (const uint32_t known : placed) {
      if (seen.Is(window_, known)) return known;
    }
    if (!std::exchange(views_[index].is_taken, true)) {
      Stack& stack = window_.stacks[index];
      std::ranges::copy(seen.frames, window_.frames.begin() + stack.first_frame);
      stack.user_frames = seen.stack.user_frames;
      stack.end = seen.stack.end;
      stack.process = seen.stack.process;
      placed.push_back(index);
      return index;
    }
    Stack stack = seen.stack;
    stack.first_frame = static_cast<uint32_t>(window_.frames.size());
    window_.frames.insert(window_.frames.end(), seen.frames.begin(), seen.frames.end());
    window_.stacks.push_back(stack);
    placed.push_back(static_cast<uint32_t>(window_.stacks.size() - 1));
    return placed.back();
  }

  struct Views {
    bool has_addresses = false;  // user addresses, for which each process has its own meaning
    bool is_taken = false;       // what some sample saw in it has its place
    size_t original = 0;         // index into originals_
  };

  Window window_;
  const ProcessTable& processes_;
  ResolveTally& tally_;
  std::vector<Views> views_;     // by stack, of those the window came with
  std::vector<View> originals_;  // of stacks that samples see differently
  // What was seen in a stack, by that stack and by whose it is alone; indices into Window::stacks.
  absl::flat_hash_map<std::pair<uint32_t, ProcessKey>, std::vector<uint32_t>> placed_;
};

}  // namespace

Window ResolveWindow(Window window, const ProcessTable& processes, ResolveTally& tally) {
  return Resolver(std::move(window), processes, tally).Run();
}

}  // namespace pyrometer
