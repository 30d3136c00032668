// SPDX-License-Identifier: Apache-2.0
#include "symbolize/source_map_writer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

namespace pyrometer {
namespace {

constexpr uint64_t kHighestOffset = std::numeric_limits<uint32_t>::max();
constexpr size_t kLongestText = 4096;  // longer ones are cut
constexpr size_t kStep = size_t{256} << 10;

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void PutUleb(uint64_t value, std::vector<std::byte>& out) {
  do {
    const uint64_t more = value > 0x7f ? 0x80 : 0;
    out.push_back(static_cast<std::byte>((value & 0x7f) | more));
    value >>= 7;
  } while (value != 0);
}

void PutSleb(int64_t value, std::vector<std::byte>& out) {
  while (true) {
    const int64_t low = value & 0x7f;
    value >>= 7;
    const bool is_last = (value == 0 && (low & 0x40) == 0) || (value == -1 && (low & 0x40) != 0);
    out.push_back(static_cast<std::byte>(low | (is_last ? 0 : 0x80)));
    if (is_last) return;
  }
}

// Gives what is put together piece by piece on in larger ones.
class Buffered {
 public:
  explicit Buffered(ByteWriter& out) : out_(out) {}
  void Put(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kStep) Flush();
  }
  bool Flush() {
    has_room_ = has_room_ && out_.Put(buffer_);
    buffer_.clear();
    return has_room_;
  }

 private:
  ByteWriter& out_;
  std::vector<std::byte> buffer_;
  bool has_room_ = true;
};

}  // namespace

// The rows of the map, encoded.
class SourceMapWriter::Rows {
 public:
  void Add(uint32_t address, uint32_t scope, uint32_t path, uint32_t line) {
    if (count_ > 0 && std::tie(scope, path, line) == std::tie(scope_, path_, line_)) return;
    if (count_ == 0 && scope == 0 && path == 0) return;
    if (count_++ % kSourceMapBlockRows == 0) {
      blocks.push_back({.start = address, .at = static_cast<uint32_t>(bytes.size())});
      address_ = address;
      scope_ = path_ = line_ = 0;
    }
    PutUleb(address - address_, bytes);
    PutSleb(int64_t{scope} - scope_, bytes);
    PutSleb(int64_t{path} - path_, bytes);
    PutSleb(int64_t{line} - line_, bytes);
    std::tie(address_, scope_, path_, line_) = std::tie(address, scope, path, line);
  }

  std::vector<std::byte> bytes;
  std::vector<SourceMapBlock> blocks;

 private:
  size_t count_ = 0;
  uint32_t address_ = 0;
  uint32_t scope_ = 0;
  uint32_t path_ = 0;
  uint32_t line_ = 0;
};

SourceMapWriter::SourceMapWriter(ElfAddress base, const Limits& limits)
    : base_(base.value()), limits_(limits) {
  Intern("");
}

SourceSink::Text SourceMapWriter::AddName(std::string_view name) {
  return Intern(name);
}

SourceSink::Text SourceMapWriter::AddPath(std::string_view directory, std::string_view file) {
  const SourceMapPath path{.directory = Intern(directory), .file = Intern(file)};
  const uint64_t key = uint64_t{path.directory} << 32 | path.file;
  const auto [known, is_new] = known_paths_.try_emplace(key, 0);
  if (is_new) {
    paths_.push_back(path);
    known->second = static_cast<uint32_t>(paths_.size());
  }
  return known->second;
}

uint32_t SourceMapWriter::Intern(std::string_view text) {
  text = text.substr(0, std::min(text.find('\0'), kLongestText));
  if (const auto known = known_texts_.find(text); known != known_texts_.end()) return known->second;
  is_full_ |= texts_size_ + text.size() + 1 > limits_.texts;
  if (is_full_) return 0;
  const uint32_t offset = texts_size_;
  texts_size_ += static_cast<uint32_t>(text.size()) + 1;
  known_texts_.emplace(texts_.emplace_back(text), offset);
  return offset;
}

// Nothing if it is out of reach.
std::optional<std::pair<uint32_t, uint32_t>> SourceMapWriter::Relative(const Range& range) const {
  const uint64_t begin = range.begin - base_;  // wraps below base_
  if (range.begin < base_ || begin > kHighestOffset || range.end <= range.begin)
    return std::nullopt;
  const uint64_t end = std::min(range.end - base_, kHighestOffset);
  if (end <= begin) return std::nullopt;
  return std::pair(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
}

void SourceMapWriter::AddScope(const Scope& scope) {
  if (scope.depth > open_.size() || scope.depth >= kSourceMapMaxDepth) return;
  is_full_ |= scopes_.size() == limits_.scopes || ranges_.size() > limits_.ranges;
  if (is_full_) return;
  open_.resize(scope.depth);
  scopes_.push_back({.name = scope.name == kUnknown ? 0 : scope.name,
                     .parent = open_.empty() ? 0 : open_.back(),
                     .call_path = scope.call_file == kUnknown ? 0 : scope.call_file,
                     .call_line = scope.call_line});
  const auto number = static_cast<uint32_t>(scopes_.size());
  open_.push_back(number);
  for (const Range& range : scope.ranges) {
    const auto code = Relative(range);
    if (!code) continue;
    is_full_ |= ranges_.size() > limits_.ranges;
    if (is_full_) return;
    ranges_.push_back({.begin = code->first, .end = code->second, .scope = number});
  }
}

void SourceMapWriter::AddSequence(std::span<const Row> rows, uint64_t end) {
  is_full_ |= rows.size() > limits_.rows - rows_.size();
  if (is_full_) return;
  Sequence sequence{.first = rows_.size()};
  for (const Row& row : rows) {
    const auto code = Relative({.begin = row.address, .end = end});
    if (!code) continue;
    sequence.end = code->second;
    rows_.push_back(
        {.address = code->first, .path = row.file == kUnknown ? 0 : row.file, .line = row.line});
  }
  sequence.count = rows_.size() - sequence.first;
  if (sequence.count == 0) return;
  const auto first = rows_.begin() + static_cast<ptrdiff_t>(sequence.first);
  std::stable_sort(first, rows_.end(),
                   [](const LineRow& a, const LineRow& b) { return a.address < b.address; });
  sequence.begin = first->address;
  sequences_.push_back(sequence);
}

// The code of functions, by function; what several have is the first one's.
std::vector<SourceMapWriter::CodeOf> SourceMapWriter::KeepFunctionsApart() const {
  std::vector<CodeOf> functions;
  std::ranges::copy_if(ranges_, std::back_inserter(functions),
                       [this](const CodeOf& code) { return scopes_[code.scope - 1].parent == 0; });
  std::ranges::sort(functions, [](const CodeOf& a, const CodeOf& b) {
    return std::tie(a.begin, a.scope) < std::tie(b.begin, b.scope);
  });
  uint32_t end = 0;  // of the functions before
  for (CodeOf& code : functions) {
    code.begin = std::max(code.begin, end);
    end = std::max(end, code.end);
  }
  std::erase_if(functions, [](const CodeOf& code) { return code.begin >= code.end; });
  std::ranges::sort(functions, [](const CodeOf& a, const CodeOf& b) {
    return std::tie(a.scope, a.begin) < std::tie(b.scope, b.begin);
  });
  return functions;
}

// Which call each piece of a function's code belongs to. `code`: of the function, in order.
// `calls`: those inlined into it, by where they begin.
void SourceMapWriter::Flatten(std::span<const CodeOf> code, std::span<const CodeOf> calls,
                              std::vector<ScopeAt>& flat) {
  const auto is_before = [](const CodeOf& a, const CodeOf& b) { return a.scope < b.scope; };
  std::vector<CodeOf> open;  // a heap, the one with the highest number on top
  size_t next = 0;
  for (const CodeOf& piece : code) {
    for (uint32_t at = piece.begin; at < piece.end;) {
      for (; next < calls.size() && calls[next].begin <= at; ++next) {
        open.push_back(calls[next]);
        std::ranges::push_heap(open, is_before);
      }
      while (!open.empty() && open.front().end <= at) {
        std::ranges::pop_heap(open, is_before);
        open.pop_back();
      }
      flat.push_back({.address = at, .scope = open.empty() ? piece.scope : open.front().scope});
      at = open.empty() ? piece.end : std::min(piece.end, open.front().end);
      if (next < calls.size()) at = std::min(at, calls[next].begin);
    }
    flat.push_back({.address = piece.end, .scope = 0});
  }
}

std::vector<SourceMapWriter::ScopeAt> SourceMapWriter::FlattenScopes() {
  const std::vector<CodeOf> functions = KeepFunctionsApart();
  std::vector<ScopeAt> flat;
  auto range = ranges_.begin();
  for (auto first = functions.begin(); first != functions.end();) {
    const uint32_t function = first->scope;
    const auto last =
        std::find_if(first, functions.end(), [&](const auto& c) { return c.scope != function; });
    range = std::find_if(range, ranges_.end(), [&](const auto& c) { return c.scope > function; });
    const auto calls_end = std::find_if(
        range, ranges_.end(), [this](const auto& c) { return scopes_[c.scope - 1].parent == 0; });
    std::ranges::sort(range, calls_end, {}, &CodeOf::begin);
    Flatten({first, last}, {range, calls_end}, flat);
    range = calls_end;
    first = last;
  }
  // Where one function ends and another begins, the other counts.
  std::ranges::sort(flat, [](const ScopeAt& a, const ScopeAt& b) {
    return std::tie(a.address, a.scope) < std::tie(b.address, b.scope);
  });
  std::vector<ScopeAt> merged;
  for (size_t i = 0; i < flat.size(); ++i) {
    if (i + 1 < flat.size() && flat[i + 1].address == flat[i].address) continue;
    if (merged.empty() || merged.back().scope != flat[i].scope) merged.push_back(flat[i]);
  }
  return merged;
}

std::vector<SourceMapWriter::LineRow> SourceMapWriter::FlattenRows() {
  std::ranges::stable_sort(sequences_, {}, &Sequence::begin);
  std::vector<LineRow> flat;
  flat.reserve(rows_.size() + sequences_.size() + 1);
  uint32_t end = 0;  // of the sequences before
  for (const Sequence& sequence : sequences_) {
    if (sequence.end <= end) continue;
    // Where the one before ended, unless this one goes on from there.
    if (!flat.empty() && end < sequence.begin) flat.push_back({.address = end});
    for (LineRow row : std::span(rows_).subspan(sequence.first, sequence.count)) {
      row.address = std::max(row.address, end);
      if (!flat.empty() && flat.back().address == row.address) {
        flat.back() = row;
      } else {
        flat.push_back(row);
      }
    }
    end = sequence.end;
  }
  if (!flat.empty()) flat.push_back({.address = end});
  return flat;
}

bool SourceMapWriter::Write(ByteWriter& out) && {
  const std::vector<ScopeAt> scopes = FlattenScopes();
  // Not = {}, which keeps the memory.
  ranges_ = std::vector<CodeOf>();
  const std::vector<LineRow> lines = FlattenRows();
  rows_ = std::vector<LineRow>();
  Rows rows;
  uint32_t scope = 0;
  LineRow line;
  for (size_t s = 0, l = 0; s < scopes.size() || l < lines.size();) {
    const uint32_t of_scope = s < scopes.size() ? scopes[s].address : ~uint32_t{0};
    const uint32_t of_line = l < lines.size() ? lines[l].address : ~uint32_t{0};
    const uint32_t address = std::min(of_scope, of_line);
    if (s < scopes.size() && of_scope == address) scope = scopes[s++].scope;
    if (l < lines.size() && of_line == address) line = lines[l++];
    rows.Add(address, scope, line.path, line.line);
  }
  const SourceMapHeader header{.base = base_,
                               .texts = texts_size_,
                               .paths = paths_.size(),
                               .scopes = scopes_.size(),
                               .rows = rows.bytes.size(),
                               .blocks = rows.blocks.size(),
                               .is_cut = is_full_ ? 1U : 0U,
                               .lost = lost_};
  Buffered bytes(out);
  bytes.Put(BytesOf(header));
  for (const std::string& text : texts_) {
    bytes.Put(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
  }
  bytes.Put(std::as_bytes(std::span(paths_)));
  bytes.Put(std::as_bytes(std::span(scopes_)));
  bytes.Put(rows.bytes);
  bytes.Put(std::as_bytes(std::span(rows.blocks)));
  return bytes.Flush();
}

}  // namespace pyrometer
