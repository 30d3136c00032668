// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_inlines.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "binary/byte_source.h"

namespace pyrometer {
namespace {

using Layout = GoInlines::Layout;

// Go 1.13 to 1.15, and 1.12; 1.16 to 1.19; since then. Before 1.12 trees did not tell the call's
// place.
constexpr Layout kGo12Layouts[] = {{2, 4, 20, 12, 16}, {1, 2, 20, 12, 16}};
constexpr Layout kGo116Layouts[] = {{2, 3, 20, 12, 16}};
constexpr Layout kGo120Layouts[] = {{2, 3, 16, 4, 8}};

std::span<const Layout> LayoutsOf(GoHeader::Format format) {
  switch (format) {
    case GoHeader::Format::kGo12:
      return kGo12Layouts;
    case GoHeader::Format::kGo116:
    case GoHeader::Format::kGo118:
      return kGo116Layouts;
    case GoHeader::Format::kGo120:
      return kGo120Layouts;
  }
  return {};
}

// All trees, and what lies between them. Kubelet's take 3 MiB.
constexpr uint64_t kMaxTrees = uint64_t{64} << 20;
// The beginning of the last tree is known, not its end.
constexpr uint64_t kMaxLastTree = uint64_t{1} << 20;
// Functions with inlined calls whose trees must be sound.
constexpr size_t kSample = 256;
// Go's own code reaches 12.
constexpr uint32_t kMaxDepth = 128;
// In one function, of all its calls: 16 MiB.
constexpr size_t kMaxRanges = size_t{1} << 20;

// [begin, end).
struct Extent {
  uint64_t begin = std::numeric_limits<uint64_t>::max();
  uint64_t end = 0;
};

// Opens and closes the ranges of calls while instructions are passed in order.
class RangeWriter {
 public:
  RangeWriter(uint64_t function, std::vector<GoInlinedCall>& calls)
      : function_(function), calls_(calls) {}

  // From `offset` on, `next` is the innermost call, or none. False if there are too many ranges.
  bool Switch(int32_t next, uint64_t offset) {
    const uint64_t address = function_ + offset;
    int32_t leaving = std::exchange(current_, next);
    while (leaving != next) {
      if (DepthOf(leaving) >= DepthOf(next)) {
        calls_[leaving].ranges.back().end = address;
        leaving = calls_[leaving].parent;
      } else {
        if (++ranges_ > kMaxRanges) return false;
        calls_[next].ranges.push_back({.begin = address, .end = address});
        next = calls_[next].parent;
      }
    }
    return true;
  }

 private:
  uint32_t DepthOf(int32_t call) const {
    return call == GoInlinedCall::kNone ? 0 : calls_[call].depth;
  }

  uint64_t function_;
  std::vector<GoInlinedCall>& calls_;
  int32_t current_ = GoInlinedCall::kNone;
  size_t ranges_ = 0;
};

// The position of the call with this index, or none.
int32_t PositionOf(std::span<const GoInlinedCall> calls, int32_t index) {
  const auto found = std::ranges::lower_bound(calls, index, {}, &GoInlinedCall::index);
  if (found == calls.end() || found->index != index) return GoInlinedCall::kNone;
  return static_cast<int32_t>(found - calls.begin());
}

void AddIndices(std::span<const GoRun> runs, std::vector<GoInlinedCall>& calls) {
  std::vector<int32_t> indices;
  for (const GoRun& run : runs) {
    if (run.value >= 0) indices.push_back(run.value);
  }
  std::ranges::sort(indices);
  // Not std::ranges::unique: clang 14, which checks and fuzzes this code, cannot compile subranges.
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  calls.resize(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) calls[i].index = indices[i];
}

// A caller's index is always less than that of what is inlined into it.
bool LinkParents(std::span<const GoRun> runs, std::vector<GoInlinedCall>& calls) {
  for (GoInlinedCall& call : calls) {
    if (call.call_site >= runs.back().end) return false;
    const int32_t index = ValueAt(runs, call.call_site);
    if (index >= call.index) return false;
    if (index < 0) continue;
    call.parent = PositionOf(calls, index);
    if (call.parent == GoInlinedCall::kNone) return false;
    call.depth = calls[call.parent].depth + 1;
    if (call.depth > kMaxDepth) return false;
  }
  return true;
}

void LinkSiblings(std::vector<GoInlinedCall>& calls) {
  int32_t first_root = GoInlinedCall::kNone;
  for (size_t i = calls.size(); i-- > 0;) {
    const int32_t parent = calls[i].parent;
    int32_t& first = parent == GoInlinedCall::kNone ? first_root : calls[parent].first_child;
    calls[i].next_sibling = std::exchange(first, static_cast<int32_t>(i));
  }
}

bool AddRanges(uint64_t function, std::span<const GoRun> runs, std::vector<GoInlinedCall>& calls) {
  RangeWriter writer(function, calls);
  for (const GoRun& run : runs) {
    const int32_t call = run.value < 0 ? GoInlinedCall::kNone : PositionOf(calls, run.value);
    if (!writer.Switch(call, run.begin)) return false;
  }
  return writer.Switch(GoInlinedCall::kNone, runs.back().end);
}

}  // namespace

GoInlines GoInlines::Find(const GoImage& image, const GoTable& table,
                          std::span<const uint64_t> bases) {
  const std::span<const Layout> layouts = LayoutsOf(table.header().format);
  GoInlines inlines;
  for (const Layout& layout : layouts) {
    inlines.layout_ = layout;
    if (inlines.TakeLayout(image, table, bases)) {
      inlines.are_known_ = true;
      return inlines;
    }
  }
  // Where the layout does not depend on the trees, it still tells which code was inlined.
  if (layouts.size() > 1) inlines.layout_.reset();
  inlines.trees_.clear();
  return inlines;
}

bool GoInlines::TakeLayout(const GoImage& image, const GoTable& table,
                           std::span<const uint64_t> bases) {
  Extent extent;
  for (uint64_t i = 0; i < table.header().functions; ++i) {
    const std::optional<GoFunction> function = table.Function(i);
    if (!function) continue;
    const std::optional<uint64_t> tree = TreeOf(table, *function);
    if (!tree) continue;
    extent.begin = std::min(extent.begin, *tree);
    extent.end = std::max(extent.end, *tree);
  }
  // No function has inlined calls, if that is what PCDATA of this number means.
  if (extent.begin > extent.end) return table.header().format != GoHeader::Format::kGo12;
  if (extent.end - extent.begin > kMaxTrees) return false;

  trees_at_ = extent.begin;
  for (const uint64_t base : bases) {
    const uint64_t begin = base + extent.begin;  // may wrap: then the file does not hold it
    const uint64_t wanted = extent.end - extent.begin + kMaxLastTree;
    Result<std::vector<std::byte>> trees = image.Read(begin, std::min(wanted, image.SizeAt(begin)));
    if (!trees) continue;
    trees_ = *std::move(trees);
    if (SuitSample(table)) return true;
  }
  return false;
}

std::optional<uint64_t> GoInlines::TreeOf(const GoTable& table, const GoFunction& function) const {
  if (table.PcDataAt(function, layout_->pc_data) == 0) return std::nullopt;
  return table.FuncData(function, layout_->func_data);
}

bool GoInlines::SuitSample(const GoTable& table) const {
  GoPcValues values(table.header().quantum);
  std::vector<GoRun> runs;
  std::vector<GoInlinedCall> calls;
  size_t seen = 0;
  for (uint64_t i = 0; i < table.header().functions && seen < kSample; ++i) {
    const std::optional<GoFunction> function = table.Function(i);
    if (!function || !TreeOf(table, *function)) continue;
    if (!ReadIndices(table, *function, values, runs)) return false;
    if (!ReadCalls(table, *function, runs, calls)) return false;
    for (const GoInlinedCall& call : calls) {
      if (!table.LooksLikeName(call.name)) return false;
    }
    if (!calls.empty()) ++seen;
  }
  return seen > 0;
}

bool GoInlines::ReadIndices(const GoTable& table, const GoFunction& function, GoPcValues& values,
                            std::vector<GoRun>& runs) const {
  runs.clear();
  if (!layout_) return false;
  const uint32_t at = table.PcDataAt(function, layout_->pc_data);
  return at == 0 || values.Read(table.PcValues(at), function.next - function.begin, runs);
}

bool GoInlines::ReadCalls(const GoTable& table, const GoFunction& function,
                          std::span<const GoRun> runs, std::vector<GoInlinedCall>& calls) const {
  calls.clear();
  AddIndices(runs, calls);
  if (calls.empty()) return true;
  const std::optional<uint64_t> tree = TreeOf(table, function);
  if (tree && ReadEntries(*tree, calls) && LinkParents(runs, calls) &&
      AddRanges(function.begin, runs, calls)) {
    LinkSiblings(calls);
    return true;
  }
  calls.clear();
  return false;
}

bool GoInlines::ReadEntries(uint64_t tree, std::vector<GoInlinedCall>& calls) const {
  if (tree < trees_at_) return false;
  for (GoInlinedCall& call : calls) {
    const uint64_t at = tree - trees_at_ + static_cast<uint64_t>(call.index) * layout_->entry_size;
    if (!Within(at, layout_->entry_size, trees_.size())) return false;
    const std::byte* const entry = trees_.data() + at;
    std::memcpy(&call.name, entry + layout_->name_at, sizeof(call.name));
    std::memcpy(&call.call_site, entry + layout_->call_site_at, sizeof(call.call_site));
  }
  return true;
}

}  // namespace pyrometer
