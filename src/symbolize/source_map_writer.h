// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/byte_writer.h"
#include "debuginfo/source_sink.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/source_map_format.h"

namespace pyrometer {

// Puts a SourceMap together, and decides where what it is given contradicts itself:
// - Of functions that overlap, the one that begins later is cut where the earlier one ends; of
// those
//   that begin together the one given first counts: so one whose code several units have is there
//   once.
// - Code of a function that several inlined calls claim belongs to the one given last, as deep as
//   that is: compilers (gcc) let a call's code reach beyond that of the call that it is inlined
//   into, and into that of its neighbours. llvm-symbolizer reads it so, too.
// - Of sequences of rows that overlap, the one that begins later is cut where the earlier one ends.
//   Of rows with the same address the last counts.
// So the order in which units are given matters only where code is the same.
class SourceMapWriter : public SourceSink {
 public:
  struct Limits {
    size_t texts = size_t{128} << 20;  // bytes
    size_t scopes = size_t{4} << 20;
    size_t ranges = size_t{6} << 20;  // of scopes
    size_t rows = size_t{12} << 20;
  };

  // What lies below `base`, or more than 4 GiB above it, is left out.
  explicit SourceMapWriter(ElfAddress base) : SourceMapWriter(base, Limits()) {}
  SourceMapWriter(ElfAddress base, const Limits& limits);

  Text AddName(std::string_view name) override;
  Text AddPath(std::string_view directory, std::string_view file) override;
  void AddScope(const Scope& scope) override;
  void AddSequence(std::span<const Row> rows, uint64_t end) override;
  bool is_full() const override { return is_full_; }

  // So many more units, functions or calls could not be read.
  void NoteLost(uint64_t count) {
    lost_ = static_cast<uint32_t>(std::min<uint64_t>(lost_ + count, ~uint32_t{0}));
  }

  bool empty() const { return ranges_.empty() && rows_.empty(); }

  // False if `out` has no room.
  [[nodiscard]] bool Write(ByteWriter& out) &&;

 private:
  // Code of a scope, or between two rows; relative to base_.
  struct CodeOf {
    uint32_t begin = 0;
    uint32_t end = 0;
    uint32_t scope = 0;  // number
  };
  struct LineRow {
    uint32_t address = 0;
    uint32_t path = 0;
    uint32_t line = 0;
  };
  struct Sequence {
    uint32_t begin = 0;
    uint32_t end = 0;
    size_t first = 0;  // of rows_
    size_t count = 0;
  };
  // From an address on.
  struct ScopeAt {
    uint32_t address = 0;
    uint32_t scope = 0;
  };
  class Rows;

  std::optional<std::pair<uint32_t, uint32_t>> Relative(const Range& range) const;
  uint32_t Intern(std::string_view text);
  std::vector<CodeOf> KeepFunctionsApart() const;
  static void Flatten(std::span<const CodeOf> code, std::span<const CodeOf> calls,
                      std::vector<ScopeAt>& flat);
  std::vector<ScopeAt> FlattenScopes();
  std::vector<LineRow> FlattenRows();

  const uint64_t base_;
  const Limits limits_;
  bool is_full_ = false;
  uint32_t lost_ = 0;
  std::deque<std::string> texts_;  // in the order of their offsets
  uint32_t texts_size_ = 0;
  absl::flat_hash_map<std::string_view, uint32_t> known_texts_;
  std::vector<SourceMapPath> paths_;
  absl::flat_hash_map<uint64_t, uint32_t> known_paths_;  // by the two offsets
  std::vector<SourceMapScope> scopes_;
  std::vector<uint32_t> open_;  // by depth: numbers of the scopes that the next may be inlined into
  std::vector<CodeOf> ranges_;  // in the order of their scopes
  std::vector<Sequence> sequences_;
  std::vector<LineRow> rows_;
};

}  // namespace pyrometer
