// SPDX-License-Identifier: Apache-2.0
#include "profile/shown_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/printable.h"
#include "profile/text.h"

namespace pyrometer {
namespace {

ShownFrame::Kind KindOf(CodeOrigin origin) {
  switch (origin) {
    case CodeOrigin::kUser:
      return ShownFrame::Kind::kUser;
    case CodeOrigin::kKernel:
      return ShownFrame::Kind::kKernel;
    case CodeOrigin::kJit:
      return ShownFrame::Kind::kJit;
    case CodeOrigin::kUnknown:
      break;
  }
  return ShownFrame::Kind::kUnknown;
}

std::string SourceOf(const Line& line) {
  std::string source = Printable(line.file);
  if (!source.empty() && line.start_line > 0) source += fmt::format(":{}", line.start_line);
  return source;
}

}  // namespace

ShownStacks::ShownStacks(const Profile& profile, Edit edit) : edit_(edit) {
  const std::vector<std::vector<uint32_t>> of_location = InternLocations(profile);
  for (const ProfileSample& sample : profile.samples) {
    const size_t first = ids_.size();
    ids_.push_back(Intern({.kind = ShownFrame::Kind::kProcess,
                           .name = Printable(ProcessNameOf(sample)),
                           .object = {},
                           .source = {}}));
    if (IsCut(sample.end)) {
      ids_.push_back(Intern({.kind = ShownFrame::Kind::kCut,
                             .name = CutMarker(sample.end),
                             .object = {},
                             .source = {}}));
    }
    for (auto index = sample.stack.rbegin(); index != sample.stack.rend(); ++index) {
      const std::vector<uint32_t>& frames = of_location[*index];
      ids_.insert(ids_.end(), frames.rbegin(), frames.rend());
    }
    stacks_.push_back({first, ids_.size() - first, sample.count});
  }
  SortFrames();
  SortStacks();
}

uint32_t ShownStacks::Intern(ShownFrame frame) {
  if (edit_ != nullptr) edit_(frame);
  std::string source = std::exchange(frame.source, {});
  const auto [known, is_new] =
      known_.try_emplace(std::move(frame), static_cast<uint32_t>(known_.size()));
  if (is_new) sources_.emplace_back();
  if (std::string& found = sources_[known->second]; found.empty()) found = std::move(source);
  return known->second;
}

// For each location its frames, innermost inlined function first.
std::vector<std::vector<uint32_t>> ShownStacks::InternLocations(const Profile& profile) {
  std::vector<std::vector<uint32_t>> of_location;
  of_location.reserve(profile.locations.size());
  for (const LocationRef& location : profile.locations) {
    std::vector<uint32_t>& frames = of_location.emplace_back();
    ShownFrame frame{.kind = KindOf(location->origin), .name = {}, .object = {}, .source = {}};
    if (location->object != nullptr) frame.object = Printable(location->object->path);
    const std::vector<Line> nameless(1);
    const std::vector<Line>& lines = location->lines.empty() ? nameless : location->lines;
    for (size_t i = 0; i < lines.size(); ++i) {
      frame.name = Printable(NameOf(lines[i]));
      frame.inlined = i + 1 < lines.size();
      frame.source = SourceOf(lines[i]);
      frames.push_back(Intern(frame));
    }
  }
  return of_location;
}

void ShownStacks::SortFrames() {
  frames_.resize(known_.size());
  std::vector<uint32_t> order(known_.size());
  while (!known_.empty()) {
    auto node = known_.extract(known_.begin());
    frames_[node.mapped()] = std::move(node.key());
    frames_[node.mapped()].source = std::move(sources_[node.mapped()]);
  }
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return frames_[a] < frames_[b]; });
  std::vector<uint32_t> rank(order.size());
  std::vector<ShownFrame> sorted(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted[i] = std::move(frames_[order[i]]);
  }
  frames_ = std::move(sorted);
  for (uint32_t& id : ids_) id = rank[id];
}

void ShownStacks::SortStacks() {
  std::sort(stacks_.begin(), stacks_.end(), [this](const Stack& a, const Stack& b) {
    const auto left = FramesOf(a);
    const auto right = FramesOf(b);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  });
  size_t kept = 0;
  for (const Stack& stack : stacks_) {
    if (kept > 0 && FramesOf(stacks_[kept - 1]) == FramesOf(stack)) {
      stacks_[kept - 1].samples += stack.samples;
    } else {
      stacks_[kept++] = stack;
    }
  }
  stacks_.resize(kept);
}

}  // namespace pyrometer
