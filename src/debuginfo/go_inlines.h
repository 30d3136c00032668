// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "debuginfo/go_image.h"
#include "debuginfo/go_pc_values.h"
#include "debuginfo/go_table.h"
#include "debuginfo/source_sink.h"

namespace pyrometer {

// A call that was inlined into a function.
struct GoInlinedCall {
  static constexpr int32_t kNone = -1;

  int32_t index = 0;  // in the function's tree
  uint32_t name = 0;  // of what was called, as for GoTable::Name
  uint32_t call_site =
      0;  // an instruction with the position of the call; from the function's beginning
  int32_t parent = kNone;                 // what it is in: a position among the function's calls
  uint32_t depth = 1;                     // below the function
  int32_t first_child = kNone;            // likewise; in the order of indices
  int32_t next_sibling = kNone;           // likewise; of a call without parent too
  std::vector<SourceSink::Range> ranges;  // in the ELF's own space, ascending, apart
};

// Tells which calls were inlined into a function. For each instruction, PCDATA_InlTreeIndex is the
// index of the innermost call in the function's tree, FUNCDATA_InlTree. An entry of the tree has
// the name, and an instruction of the caller whose position is that of the call; what that one is
// inlined into is found in the same way. Format: runtime.inlinedCall in src/runtime/symtab.go of
// the Go distribution, later symtabinl.go.
class GoInlines {
 public:
  struct Layout {
    uint32_t pc_data = 0;    // PCDATA_InlTreeIndex
    uint32_t func_data = 0;  // FUNCDATA_InlTree
    // Of the tree's entries, in bytes.
    uint32_t entry_size = 0;
    uint32_t name_at = 0;
    uint32_t call_site_at = 0;
  };

  // Of the layouts that the table's format may come with, and of `bases`, which FUNCDATA may be
  // relative to, takes those under which the trees of a sample of functions are sound. If there are
  // none, inlined calls are unknown.
  static GoInlines Find(const GoImage& image, const GoTable& table,
                        std::span<const uint64_t> bases);

  // False if no tree can be read, although functions have some.
  bool are_known() const { return are_known_; }

  // Replaces `runs` by the indices of innermost calls. False if it cannot be told which
  // instructions belong to inlined calls.
  bool ReadIndices(const GoTable& table, const GoFunction& function, GoPcValues& values,
                   std::vector<GoRun>& runs) const;

  // Replaces `calls` by those that `runs` tell of, by index: each behind the one it is in. False,
  // and no calls, if they contradict themselves. Names are not looked at.
  bool ReadCalls(const GoTable& table, const GoFunction& function, std::span<const GoRun> runs,
                 std::vector<GoInlinedCall>& calls) const;

 private:
  bool TakeLayout(const GoImage& image, const GoTable& table, std::span<const uint64_t> bases);
  std::optional<uint64_t> TreeOf(const GoTable& table, const GoFunction& function) const;
  bool SuitSample(const GoTable& table) const;
  bool ReadEntries(uint64_t tree, std::vector<GoInlinedCall>& calls) const;

  std::optional<Layout> layout_;
  bool are_known_ = false;
  uint64_t trees_at_ = 0;  // the FUNCDATA of what `trees_` begins with
  std::vector<std::byte> trees_;
};

}  // namespace pyrometer
