// SPDX-License-Identifier: Apache-2.0
#include "profile/function_sources.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace pyrometer {
namespace {

struct FrameLine {
  uint32_t frame = 0;
  SourceLine line;
};

constexpr uint32_t kNoLine = UINT32_MAX;

// The distinct lines of all locations, and for each location which of them are its own.
struct LineIndex {
  std::vector<FrameLine> lines;
  std::vector<uint32_t> of_locations;  // innermost first; kNoLine where none is known
  std::vector<size_t> first;           // for each location, and one more for the end
};

LineIndex IndexLines(const Profile& profile, const ShownStacks& shown) {
  LineIndex index;
  absl::flat_hash_map<std::tuple<uint32_t, absl::string_view, int64_t>, uint32_t> known;
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    const std::vector<Line>& lines = profile.locations[i]->lines;
    const absl::Span<const uint32_t> frames = shown.FramesOfLocation(i);
    index.first.push_back(index.of_locations.size());
    for (size_t at = 0; at < lines.size(); ++at) {
      const Line& line = lines[at];
      if (line.file.empty()) {
        index.of_locations.push_back(kNoLine);
        continue;
      }
      const absl::string_view file(line.file.data(), line.file.size());
      const auto [entry, added] =
          known.try_emplace(std::tuple(frames[at], file, line.line), index.lines.size());
      if (added) {
        index.lines.push_back({frames[at], {.file = line.file, .line = line.line}});
      }
      index.of_locations.push_back(entry->second);
    }
  }
  index.first.push_back(index.of_locations.size());
  return index;
}

void CountSamples(const Profile& profile, LineIndex& index) {
  std::vector<size_t> last_sample(index.lines.size(), 0);  // 1 + the one it was last counted in
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const ProfileSample& sample = profile.samples[i];
    bool is_leaf = true;
    for (const uint32_t location : sample.stack) {
      for (size_t at = index.first[location]; at < index.first[location + 1]; ++at) {
        const bool is_self = std::exchange(is_leaf, false);
        const uint32_t id = index.of_locations[at];
        if (id == kNoLine) continue;
        SourceLine& line = index.lines[id].line;
        if (is_self) line.self += sample.count;
        if (std::exchange(last_sample[id], i + 1) != i + 1) line.total += sample.count;
      }
      is_leaf = false;  // also of a location without lines
    }
  }
}

bool Hotter(const SourceLine& a, const SourceLine& b) {
  return std::tuple(a.self, a.total) > std::tuple(b.self, b.total);
}

}  // namespace

FunctionSources::FunctionSources(const Profile& profile, const ShownStacks& shown) {
  LineIndex index = IndexLines(profile, shown);
  CountSamples(profile, index);
  std::erase_if(index.lines, [](const FrameLine& line) { return line.line.total == 0; });
  std::ranges::sort(index.lines, [](const FrameLine& a, const FrameLine& b) {
    return std::tuple(a.frame, b.line.total, b.line.self, a.line.file, a.line.line) <
           std::tuple(b.frame, a.line.total, a.line.self, b.line.file, b.line.line);
  });
  auto next = index.lines.begin();
  for (uint32_t frame = 0; frame < shown.frames().size(); ++frame) {
    first_.push_back(lines_.size());
    const auto begin = next;
    next = std::find_if(begin, index.lines.end(), [&](auto& line) { return line.frame != frame; });
    const auto by_heat = [](const FrameLine& a, const FrameLine& b) {
      return Hotter(b.line, a.line);
    };
    const auto hottest = std::max_element(begin, next, by_heat);
    for (auto line = begin; line != next; ++line) {
      if (line - begin < static_cast<ptrdiff_t>(kMostLines) || line == hottest) {
        lines_.push_back(line->line);
      }
    }
  }
  first_.push_back(lines_.size());
}

const SourceLine* FunctionSources::HottestOf(uint32_t frame) const {
  const absl::Span<const SourceLine> lines = LinesOf(frame);
  if (lines.empty()) return nullptr;
  return &*std::max_element(lines.begin(), lines.end(),
                            [](auto& a, auto& b) { return Hotter(b, a); });
}

}  // namespace pyrometer
