// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "debuginfo/source_sink.h"

namespace pyrometer {

// Keeps all that a reader gives, and tells what an address is.
class CollectedSource : public SourceSink {
 public:
  // As of runtime.Frame, or of a debugger's frame.
  struct Frame {
    std::string function;
    std::string file;
    uint32_t line = 0;
    bool operator==(const Frame&) const = default;
    friend void PrintTo(const Frame& frame, std::ostream* out) {
      *out << frame.function << " " << frame.file << ":" << frame.line;
    }
  };

  Text AddName(std::string_view name) override { return Add(std::string(name)); }
  Text AddPath(std::string_view directory, std::string_view file) override {
    const bool is_whole = directory.empty() || file.starts_with('/');
    return Add(is_whole ? std::string(file) : std::string(directory).append("/").append(file));
  }
  bool is_full() const override { return scopes_.size() >= most_; }

  void AddScope(const Scope& scope) override {
    is_sound_ &= !scope.ranges.empty() && (scope.depth == 0 || !scopes_.empty());
    is_sound_ &= scope.depth == 0 || scope.depth <= scopes_.back().depth + 1;
    for (const Range& range : scope.ranges) is_sound_ &= range.begin < range.end;
    if (scope.depth == 0) functions_.push_back({scope.ranges.front(), scopes_.size()});
    scopes_.push_back({.depth = scope.depth,
                       .name = At(scope.name),
                       .call_file = At(scope.call_file),
                       .call_line = scope.call_line,
                       .ranges = {scope.ranges.begin(), scope.ranges.end()}});
  }

  void AddSequence(std::span<const Row> rows, uint64_t end) override {
    is_sound_ &= !rows.empty() && rows.back().address < end &&
                 std::ranges::is_sorted(rows, {}, &Row::address);
    std::vector<Line> lines;
    for (const Row& row : rows) lines.push_back({row.address, At(row.file), row.line});
    if (!lines.empty()) sequences_.push_back({std::move(lines), end});
  }

  // The frames at `address`, innermost first; none where there is no function.
  std::vector<Frame> At(uint64_t address) const {
    const FunctionRange* const function = FunctionAt(address);
    if (function == nullptr) return {};
    std::vector<Frame> frames = {{scopes_[function->scope].name, "", 0}};
    Line line = LineAt(address);
    for (size_t i = function->scope + 1; i < scopes_.size() && scopes_[i].depth > 0; ++i) {
      const CollectedScope& scope = scopes_[i];
      if (scope.depth != frames.size() || !Contains(scope.ranges, address)) continue;
      frames.back().file = scope.call_file;
      frames.back().line = scope.call_line;
      frames.push_back({scope.name, "", 0});
    }
    frames.back().file = line.file;
    frames.back().line = line.line;
    std::ranges::reverse(frames);
    return frames;
  }

  // Where the function of this name begins.
  std::optional<uint64_t> Find(std::string_view name) const {
    for (const FunctionRange& function : functions_) {
      if (scopes_[function.scope].name == name) return function.range.begin;
    }
    return std::nullopt;
  }

  // Whether all that was given is as SourceSink demands.
  bool is_sound() const { return is_sound_; }
  size_t functions() const { return functions_.size(); }
  size_t scopes() const { return scopes_.size(); }
  std::vector<Range> ranges() const {
    std::vector<Range> ranges;
    for (const FunctionRange& function : functions_) ranges.push_back(function.range);
    return ranges;
  }
  void set_most(size_t most) { most_ = most; }

 private:
  struct CollectedScope {
    uint32_t depth = 0;
    std::string name;
    std::string call_file;
    uint32_t call_line = 0;
    std::vector<Range> ranges;
  };
  struct FunctionRange {
    Range range;
    size_t scope = 0;
  };
  struct Line {
    uint64_t address = 0;
    std::string file;
    uint32_t line = 0;
  };
  struct Sequence {
    std::vector<Line> lines;
    uint64_t end = 0;
  };

  Text Add(std::string text) {
    texts_.push_back(std::move(text));
    return static_cast<Text>(texts_.size() - 1);
  }
  std::string At(Text text) const { return text == kUnknown ? std::string() : texts_.at(text); }

  static bool Contains(const std::vector<Range>& ranges, uint64_t address) {
    return std::ranges::any_of(ranges, [address](const Range& range) {
      return address >= range.begin && address < range.end;
    });
  }

  const FunctionRange* FunctionAt(uint64_t address) const {
    const auto found = std::ranges::find_if(functions_, [address](const FunctionRange& function) {
      return address >= function.range.begin && address < function.range.end;
    });
    return found == functions_.end() ? nullptr : &*found;
  }

  Line LineAt(uint64_t address) const {
    for (const Sequence& sequence : sequences_) {
      if (address < sequence.lines.front().address || address >= sequence.end) continue;
      return *std::prev(std::ranges::upper_bound(sequence.lines, address, {}, &Line::address));
    }
    return {};
  }

  std::vector<std::string> texts_;
  std::vector<CollectedScope> scopes_;
  std::vector<FunctionRange> functions_;
  std::vector<Sequence> sequences_;
  bool is_sound_ = true;
  size_t most_ = ~size_t{0};
};

}  // namespace pyrometer
