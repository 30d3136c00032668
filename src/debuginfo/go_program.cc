// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_program.h"

#include <algorithm>
#include <span>
#include <vector>

#include "debuginfo/go_image.h"
#include "debuginfo/go_inlines.h"
#include "debuginfo/go_pc_values.h"
#include "debuginfo/go_table.h"
#include "debuginfo/go_table_search.h"
#include "debuginfo/go_texts.h"

namespace pyrometer {
namespace {

// Goes through runs in ascending order of addresses.
class RunCursor {
 public:
  explicit RunCursor(std::span<const GoRun> runs) : left_(runs) {}

  // The value at `offset`, which lowers `end` to where it changes; -1 if there is none.
  int32_t ValueAt(uint32_t offset, uint32_t& end) {
    while (!left_.empty() && left_.front().end <= offset) left_ = left_.subspan(1);
    if (left_.empty()) return -1;
    end = std::min(end, left_.front().end);
    return left_.front().value;
  }

 private:
  std::span<const GoRun> left_;
};

// The kernel leaves its address for signal handlers to return to.
bool IsRestorer(const GoTable& table, const GoFunction& function) {
  return table.IsName(function.name, "runtime.sigreturn__sigaction") ||
         table.IsName(function.name, "runtime.sigreturn");  // until Go 1.20
}

// Passes a program's functions on, one after the other.
class FunctionReader {
 public:
  FunctionReader(const GoTable& table, const GoInlines& inlines, SourceSink& sink)
      : table_(table),
        inlines_(inlines),
        sink_(sink),
        texts_(table, sink),
        values_(table.header().quantum) {}

  GoCounts ReadAll();

 private:
  struct Place {
    SourceSink::Text file = SourceSink::kUnknown;
    uint32_t line = 0;
    bool operator==(const Place&) const = default;
  };

  void Read(const GoFunction& function, SourceSink::Text name);
  void ReadTables(const GoFunction& function);
  bool ReadCalls(const GoFunction& function);
  uint32_t Size(const GoFunction& function) const;
  Place PlaceOf(const GoFunction& function, int32_t file, int32_t line);
  void AddCall(const GoFunction& function, const GoInlinedCall& call);
  void AddCalls(const GoFunction& function);
  void AddRows(const GoFunction& function);

  const GoTable& table_;
  const GoInlines& inlines_;
  SourceSink& sink_;
  GoTexts texts_;
  GoPcValues values_;
  GoCounts counts_;
  uint64_t last_end_ = 0;
  uint64_t code_end_ = 0;  // of the last function, without the padding behind it
  // Of the function being read.
  std::vector<GoRun> files_;
  std::vector<GoRun> lines_;
  std::vector<GoRun> inlined_;  // indices of innermost calls
  bool knows_calls_ = false;
  std::vector<GoInlinedCall> calls_;
  std::vector<SourceSink::Row> rows_;
};

GoCounts FunctionReader::ReadAll() {
  for (uint64_t i = 0; i < table_.header().functions && !counts_.is_cut; ++i) {
    const std::optional<GoFunction> function = table_.Function(i);
    const SourceSink::Text name = function ? texts_.Name(function->name) : SourceSink::kUnknown;
    // No address is in two functions, so that together they take no longer than their code is.
    if (name == SourceSink::kUnknown || function->begin < last_end_) {
      ++counts_.malformed_functions;
      continue;
    }
    last_end_ = function->next;
    Read(*function, name);
    counts_.is_cut = sink_.is_full();
  }
  return counts_;
}

void FunctionReader::Read(const GoFunction& function, SourceSink::Text name) {
  ReadTables(function);
  // No call lies in front of what signal handlers return to, but that address is looked up as if
  // one did.
  const bool begins_earlier = IsRestorer(table_, function) && function.begin > code_end_;
  const SourceSink::Range range = {function.begin - (begins_earlier ? 1 : 0),
                                   function.begin + Size(function)};
  code_end_ = range.end;
  sink_.AddScope({.depth = 0, .name = name, .ranges = {&range, 1}});
  ++counts_.functions;
  AddCalls(function);
  AddRows(function);
}

void FunctionReader::ReadTables(const GoFunction& function) {
  const uint64_t size = function.next - function.begin;
  const bool has_indices = inlines_.ReadIndices(table_, function, values_, inlined_);
  const bool has_files =
      function.files_at == 0 || values_.Read(table_.PcValues(function.files_at), size, files_);
  const bool has_lines =
      function.lines_at == 0 || values_.Read(table_.PcValues(function.lines_at), size, lines_);
  if (function.files_at == 0) files_.clear();
  if (function.lines_at == 0) lines_.clear();
  knows_calls_ = has_indices && ReadCalls(function);
  if (!knows_calls_) {
    calls_.clear();
    ++counts_.unknown_inlines;
  }
  if (!has_files || !has_lines) ++counts_.malformed_lines;
  // A line is that of the innermost call, never to be shown as the function's.
  if (!has_indices || !has_files || !has_lines) lines_.clear();
}

bool FunctionReader::ReadCalls(const GoFunction& function) {
  if (!inlines_.ReadCalls(table_, function, inlined_, calls_)) return false;
  return std::ranges::none_of(calls_, [this](const GoInlinedCall& call) {
    return texts_.Name(call.name) == SourceSink::kUnknown;
  });
}

// Up to where the tables end; what has none, C code, ends where the next function begins.
uint32_t FunctionReader::Size(const GoFunction& function) const {
  uint32_t size = 0;
  for (const std::vector<GoRun>* runs : {&files_, &lines_, &inlined_}) {
    if (!runs->empty()) size = std::max(size, runs->back().end);
  }
  return size > 0 ? size : static_cast<uint32_t>(function.next - function.begin);
}

FunctionReader::Place FunctionReader::PlaceOf(const GoFunction& function, int32_t file,
                                              int32_t line) {
  if (line <= 0) return {};
  return {.file = texts_.Path(function.unit, file), .line = static_cast<uint32_t>(line)};
}

void FunctionReader::AddCall(const GoFunction& function, const GoInlinedCall& call) {
  const Place place =
      PlaceOf(function, ValueAt(files_, call.call_site), ValueAt(lines_, call.call_site));
  sink_.AddScope({.depth = call.depth,
                  .name = texts_.Name(call.name),
                  .call_file = place.file,
                  .call_line = place.line,
                  .ranges = call.ranges});
  ++counts_.inlined_calls;
}

// In pre-order.
void FunctionReader::AddCalls(const GoFunction& function) {
  int32_t next = calls_.empty() ? GoInlinedCall::kNone : 0;
  while (next != GoInlinedCall::kNone) {
    const GoInlinedCall* call = &calls_[next];
    AddCall(function, *call);
    next = call->first_child;
    while (next == GoInlinedCall::kNone) {
      next = call->next_sibling;
      if (call->parent == GoInlinedCall::kNone) break;
      call = &calls_[call->parent];
    }
  }
}

void FunctionReader::AddRows(const GoFunction& function) {
  if (lines_.empty()) return;
  const uint32_t size = Size(function);
  RunCursor files(files_);
  RunCursor lines(lines_);
  RunCursor unknown_calls(knows_calls_ ? std::span<const GoRun>() : inlined_);
  rows_.clear();
  Place last;
  for (uint32_t at = 0, end = size; at < size; at = end, end = size) {
    const int32_t file = files.ValueAt(at, end);
    const int32_t line = lines.ValueAt(at, end);
    const bool is_known = unknown_calls.ValueAt(at, end) < 0;
    const Place place = is_known ? PlaceOf(function, file, line) : Place{};
    if (!rows_.empty() && place == last) continue;
    rows_.push_back({.address = function.begin + at, .file = place.file, .line = place.line});
    last = place;
  }
  sink_.AddSequence(rows_, function.begin + size);
  counts_.rows += rows_.size();
}

}  // namespace

Result<GoCounts> ReadGoProgram(const ElfFile& elf, const SectionTable& sections, SourceSink& sink) {
  const GoImage image(elf);
  ASSIGN_OR_RETURN(const FoundGoTable found, FindGoTable(image, sections));
  const GoInlines inlines = GoInlines::Find(image, found.table, found.func_data_bases);
  return FunctionReader(found.table, inlines, sink).ReadAll();
}

}  // namespace pyrometer
