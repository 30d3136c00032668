// SPDX-License-Identifier: Apache-2.0
// Stacks as shown to people: functions instead of addresses, root first, preceded by the process
// and, where the root is missing, a marker.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/profile.h"

namespace pyrometer {

// A box of a flame graph; equal ones side by side are merged.
struct ShownFrame {
  enum class Kind : uint8_t { kProcess, kCut, kUser, kKernel, kJit, kUnknown };

  Kind kind = Kind::kUnknown;
  bool inlined = false;
  std::string name;    // clean, see text.h
  std::string object;  // clean path of its file; "" if there is none
  // Clean, where the function begins: "pool.go:12"; "" if not known. It makes no other frame of
  // one: ShownStacks has the first that it met.
  std::string source = {};

  auto operator<=>(const ShownFrame&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const ShownFrame& f) {
    return H::combine(std::move(h), f.kind, f.inlined, f.name, f.object);
  }
};

// The distinct stacks of a profile, sorted by their frames, and those frames.
class ShownStacks {
 public:
  struct Stack {
    size_t first = 0;
    size_t size = 0;
    uint64_t samples = 0;
  };
  // May change a frame before it is compared with others, so that fewer frames differ.
  using Edit = void (*)(ShownFrame&);

  explicit ShownStacks(const Profile& profile, Edit edit = nullptr);

  // Sorted and distinct.
  const std::vector<ShownFrame>& frames() const { return frames_; }
  // In lexicographic order of their frames, root first; distinct.
  const std::vector<Stack>& stacks() const { return stacks_; }
  // Indices into frames(), root first.
  absl::Span<const uint32_t> FramesOf(const Stack& stack) const {
    return absl::MakeConstSpan(ids_).subspan(stack.first, stack.size);
  }

 private:
  uint32_t Intern(ShownFrame frame);
  std::vector<std::vector<uint32_t>> InternLocations(const Profile& profile);
  void SortFrames();
  void SortStacks();

  Edit edit_;
  absl::flat_hash_map<ShownFrame, uint32_t> known_;  // only while the profile is read, and
  std::vector<std::string> sources_;                 // the sources of these
  std::vector<ShownFrame> frames_;
  std::vector<uint32_t> ids_;
  std::vector<Stack> stacks_;
};

}  // namespace pyrometer
