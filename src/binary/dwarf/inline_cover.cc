// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf/inline_cover.h"

#include <algorithm>
#include <queue>

namespace pyrometer {
namespace {

using Line = DwarfLineTable::Row;

// Goes through calls in the order of code.
class Calls {
 public:
  explicit Calls(std::span<DwarfInlinedRange> calls) : calls_(calls) {
    std::ranges::sort(calls_, {}, &DwarfInlinedRange::begin);
  }

  // The innermost call of the code at `address`, which is no less than in the last call of this.
  std::optional<uint32_t> At(uint64_t address) {
    for (; next_ < calls_.size() && calls_[next_].begin <= address; ++next_) {
      open_.push(calls_[next_]);
    }
    while (!open_.empty() && open_.top().end <= address) open_.pop();
    return open_.empty() ? std::nullopt : std::optional(open_.top().call);
  }

  // Up to where that stays so, at most.
  uint64_t Until(uint64_t end) const {
    if (next_ < calls_.size()) end = std::min(end, calls_[next_].begin);
    return open_.empty() ? end : std::min(end, open_.top().end);
  }

 private:
  struct Outer {
    bool operator()(const DwarfInlinedRange& a, const DwarfInlinedRange& b) const {
      return a.call < b.call;
    }
  };

  std::span<DwarfInlinedRange> calls_;
  size_t next_ = 0;
  std::priority_queue<DwarfInlinedRange, std::vector<DwarfInlinedRange>, Outer> open_;
};

DwarfPlace PlaceOf(const Line& line) {
  if (line.file == DwarfLineTable::kNoFile) return {};
  return {.file = line.file, .line = line.line};
}

}  // namespace

std::vector<DwarfRow> RowsOf(uint64_t begin, uint64_t end, std::span<DwarfInlinedRange> calls,
                             const std::vector<Line>& lines) {
  Calls open(calls);
  auto line = std::ranges::upper_bound(lines, begin, {}, &Line::address);
  std::vector<DwarfRow> rows;
  for (uint64_t at = begin; at < end;) {
    while (line != lines.end() && line->address <= at) ++line;
    DwarfRow row{.begin = ElfAddress(at), .inlined = open.At(at)};
    if (line != lines.begin()) row.place = PlaceOf(*std::prev(line));
    uint64_t until = open.Until(end);
    if (line != lines.end()) until = std::min(until, line->address);
    row.end = ElfAddress(until);
    DwarfRow* const last = rows.empty() ? nullptr : &rows.back();
    if (last != nullptr && last->place == row.place && last->inlined == row.inlined) {
      last->end = row.end;
    } else {
      rows.push_back(row);
    }
    at = until;
  }
  return rows;
}

}  // namespace pyrometer
