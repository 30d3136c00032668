// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table_builder.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "symbolize/demangle.h"

namespace pyrometer {
namespace {

// Above what the largest known executables have (a debug build of Chromium: 3 million). They take
// 64 MiB while the table is made.
constexpr uint64_t kMaxFunctions = uint64_t{4} << 20;
constexpr uint64_t kReach = std::numeric_limits<uint32_t>::max();
constexpr size_t kBufferBytes = size_t{256} << 10;
// What a table takes with its sources, but for their texts, and for these: together no more than
// has room in memory, whatever else there is (SymbolTableOptions).
constexpr uint64_t kMostWithSources = uint64_t{24} << 20;
constexpr uint64_t kMostTextBytes = uint64_t{4} << 20;
// With debug information, which is read in the place of a table that is there.
constexpr uint64_t kMostWithDebugInfo = uint64_t{192} << 20;
constexpr uint64_t kMostTextOfDebugInfo = uint64_t{64} << 20;

}  // namespace

SymbolTableBuilder::SymbolTableBuilder(ElfAddress base, const SymbolTableOptions& options)
    : base_(base.value()),
      most_with_sources_(options.with_debug_info ? kMostWithDebugInfo : kMostWithSources),
      most_text_bytes_(options.with_debug_info ? kMostTextOfDebugInfo : kMostTextBytes),
      sink_(options.bytes),
      stored_(options.Storage()) {}

void SymbolTableBuilder::Reserve(uint64_t functions) {
  functions_.reserve(std::min(functions, kMaxFunctions));
}

void SymbolTableBuilder::Add(const DeclaredFunction& function, uint32_t name) {
  const uint64_t start = function.start.value() - base_;  // wraps below base_
  if (function.limit <= function.start || start > kReach) return;
  has_room_ &= functions_.size() < kMaxFunctions;
  if (!has_room_) return;
  const uint64_t room = function.limit.value() - function.start.value();
  const uint64_t size = function.size == 0 ? room : std::min(function.size, room);
  functions_.push_back({.start = static_cast<uint32_t>(start),
                        .size = static_cast<uint32_t>(std::min(size, kReach)),
                        .name = name,
                        .binding = function.binding,
                        .typed = function.typed,
                        .sized = function.size != 0});
}

void SymbolTableBuilder::AddCode(std::span<const KnownCode> code) {
  code_.reserve(code.size());
  for (const auto& [range, what] : code) {
    std::optional<Function> placed = Placed(range);
    if (!placed) continue;
    placed->name = NameOf(what);
    code_.push_back(*placed);
  }
}

// Nothing if it is out of reach.
std::optional<SymbolTableBuilder::Function> SymbolTableBuilder::Placed(
    const CodeRange& range) const {
  const uint64_t start = range.begin.value() - base_;  // wraps below base_
  if (range.end <= range.begin || start > kReach) return std::nullopt;
  const uint64_t size = std::min(range.end.value() - range.begin.value(), kReach);
  return Function{
      .start = static_cast<uint32_t>(start), .size = static_cast<uint32_t>(size), .merged = true};
}

void SymbolTableBuilder::AddStubs(std::span<const Stub> stubs, NameReader read) {
  stubs_.reserve(stubs.size());
  for (const auto& [range, function] : stubs) {
    std::optional<Function> placed = Placed(range);
    if (!placed) continue;
    placed->name = function;
    stubs_.push_back(*placed);
  }
  std::ranges::sort(stubs_, {}, &Function::name);
  KeepStubNames(read);
  std::ranges::sort(stubs_, {}, &Function::start);
}

// REQUIRES: sorted by name.
void SymbolTableBuilder::KeepStubNames(NameReader read) {
  size_t kept = 0;
  ReadName last;
  for (Function stub : stubs_) {
    if (!has_room_) break;
    const Result<std::string_view> name = read(stub.name);
    if (!name) continue;
    const std::string_view function = WithoutVersion(*name);
    if (function.empty() || function.size() > kMaxNameLength - kStubMark.size()) continue;
    stub.name = Keep(stub.name, function, kStubMark, last);
    stubs_[kept++] = stub;
  }
  stubs_.resize(kept);
}

uint32_t SymbolTableBuilder::NameOf(Code code) {
  switch (code) {
    case Code::kPlt:
      return SymbolTable::kPlt;
    case Code::kInit:
      return SymbolTable::kInit;
    case Code::kFini:
      return SymbolTable::kFini;
    case Code::kStart:
      return SymbolTable::kStart;
    case Code::kUnnamed:
      break;
  }
  return SymbolTable::kUnnamed;
}

// A symbol says more than what is known otherwise, so of that only what lies beyond the end of the
// functions before it counts. Functions that begin in it lie within it.
void SymbolTableBuilder::Merge(std::span<const Function> all_code) {
  if (all_code.empty()) return;
  std::vector<Function> merged;
  merged.reserve(functions_.size() + all_code.size());
  uint64_t covered_until = 0;
  auto next = functions_.begin();
  for (Function code : all_code) {
    // What begins within another that covers the beginning may cover more.
    const auto counts = [&](const Function& f) {
      return f.start <= code.start || f.start < covered_until;
    };
    for (; next != functions_.end() && counts(*next); ++next) {
      covered_until = std::max(covered_until, next->end());
      merged.push_back(*next);
    }
    const uint64_t start = std::max(uint64_t{code.start}, covered_until);
    const uint64_t end = code.end();
    if (start >= end) continue;
    code.start = static_cast<uint32_t>(start);
    code.size = static_cast<uint32_t>(end - start);
    merged.push_back(code);
  }
  merged.insert(merged.end(), next, functions_.end());
  // What was cut may begin after functions that lie in it, and where another one does.
  std::ranges::stable_sort(merged, {}, &Function::start);
  functions_.clear();
  for (size_t i = 0; i < merged.size(); ++i) {
    Function& f = merged[i];
    const bool is_code = std::exchange(f.merged, false);
    const bool is_covered = is_code && i + 1 < merged.size() && merged[i + 1].start == f.start &&
                            merged[i + 1].size >= f.size;
    if (!is_covered) functions_.push_back(f);
  }
}

void SymbolTableBuilder::ReadNames(NameReader read) {
  const std::span<Function> unnamed = std::span(functions_).subspan(named_);
  std::ranges::sort(unnamed, {}, &Function::name);
  ReadName last;
  for (Function function : unnamed) {
    if (!has_room_) break;
    const Result<std::string_view> name = read(function.name);
    if (!name || name->empty() || IsPrivateLabel(function, *name)) continue;
    function.name = Keep(function.name, *name, "", last);
    functions_[named_++] = function;
  }
  functions_.resize(named_);
}

// Labels of the compiler, of arm64's mapping symbols ($x, $d), and nasm's local labels
// (function.label).
bool SymbolTableBuilder::IsPrivateLabel(const Function& function, std::string_view name) {
  if (function.typed) return false;
  if (name.starts_with('$') || name.starts_with(".L")) return true;
  return function.binding == DeclaredFunction::Binding::kLocal && !function.sized &&
         name.find('.') != std::string_view::npos;
}

// Keeps a name that is the end of the last one only once: no more bytes than the file has, and the
// marks.
uint32_t SymbolTableBuilder::Keep(uint32_t offset, std::string_view name, std::string_view mark,
                                  ReadName& last) {
  if (offset - last.offset < last.size) return last.kept_at + (offset - last.offset);
  const uint64_t at = put_ + buffer_.size();
  has_room_ &= at <= kReach;
  last = {.offset = offset,
          .size = static_cast<uint32_t>(name.size()),
          .kept_at = static_cast<uint32_t>(at)};
  Write(std::as_bytes(std::span(name)));
  Write(std::as_bytes(std::span(mark)));
  Write(std::as_bytes(std::span("", 1)));
  return last.kept_at;
}

bool SymbolTableBuilder::AddSource(const CodeRange& range, const SourceRecord& record) {
  const uint64_t start = range.begin.value() - base_;  // wraps below base_
  const uint64_t size = std::min(range.end.value() - range.begin.value(), kReach);
  const uint64_t at = put_ + buffer_.size();
  if (range.end <= range.begin || start > kReach) return true;
  const std::vector<std::byte> bytes = Encode(record);
  if (bytes.size() > kMostOfSourceRecord) return true;
  const uint64_t entries = functions_.size() * sizeof(SymbolTable::Entry) +
                           (sources_.size() + 1) * sizeof(SymbolTable::Source);
  const bool has_room = sources_.size() < SymbolTable::kMostSources &&
                        at + bytes.size() + entries <= most_with_sources_;
  if (!has_room) return false;
  sources_.push_back({.start = static_cast<uint32_t>(start),
                      .size = static_cast<uint32_t>(size),
                      .record = static_cast<uint32_t>(at)});
  Write(bytes);
  return true;
}

void SymbolTableBuilder::PutText(uint32_t number, std::string_view text) {
  if (texts_.size() <= number) texts_.resize(size_t{number} + 1, SymbolTable::kNone);
  text = text.substr(0, SymbolTable::kMostText);
  const uint64_t at = put_ + buffer_.size();
  text_bytes_ += text.size() + 1 + sizeof(uint32_t);
  const bool has_room = at <= kReach && text_bytes_ <= most_text_bytes_;
  // Then there is a table without, of which nothing is missing.
  if (most_text_bytes_ == kMostTextOfDebugInfo) has_room_ &= has_room;
  if (!has_room) return;
  texts_[number] = static_cast<uint32_t>(at);
  Write(std::as_bytes(std::span(text)));
  Write(std::as_bytes(std::span("", 1)));
}

void SymbolTableBuilder::Write(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferBytes) Flush();
}

void SymbolTableBuilder::Flush() {
  has_room_ = has_room_ && (sink_ == nullptr ? stored_->Put(buffer_) : sink_->Put(buffer_));
  put_ += buffer_.size();
  buffer_.clear();
}

Result<SymbolTable> SymbolTableBuilder::Build() && {
  const Error no_room = Fail(ErrorCode::kExhausted, "no room for the names of functions");
  SymbolTable table;
  if (!has_room_) return no_room;
  table.has_names_ = !functions_.empty();
  std::ranges::sort(functions_, Before);
  EndUnsizedAtNext();
  EndUnsizedAtCode();
  DropCoveredAndAliases();
  Merge(std::exchange(stubs_, {}));
  Merge(std::exchange(code_, {}));
  if (functions_.empty()) return table;
  table.unread_debug_info_ = unread_debug_info_;
  table.base_ = base_;
  table.size_ = functions_.size();
  WriteEntries(table);
  WriteSources(table);
  Flush();
  if (!has_room_) return no_room;
  table.stored_ = std::move(stored_);
  return table;
}

// By start; enclosing before enclosed; of equal ranges the best kind first. Unsized ones last.
bool SymbolTableBuilder::Before(const Function& a, const Function& b) {
  if (a.start != b.start) return a.start < b.start;
  if (a.sized != b.sized) return a.sized;
  if (a.size != b.size) return a.size > b.size;
  return std::tuple(!a.typed, a.binding, a.name) < std::tuple(!b.typed, b.binding, b.name);
}

void SymbolTableBuilder::EndUnsizedAtNext() {
  uint64_t next = std::numeric_limits<uint64_t>::max();  // the start above the current one
  uint64_t current = next;
  for (auto f = functions_.rbegin(); f != functions_.rend(); ++f) {
    if (f->start != current) next = std::exchange(current, f->start);
    if (!f->sized) f->size = static_cast<uint32_t>(std::min(f->end(), next) - f->start);
  }
}

void SymbolTableBuilder::EndUnsizedAtCode() {
  auto next = code_.begin();
  for (Function& f : functions_) {
    while (next != code_.end() && next->start <= f.start) ++next;
    if (next == code_.end()) break;
    if (!f.sized)
      f.size = static_cast<uint32_t>(std::min(f.end(), uint64_t{next->start}) - f.start);
  }
}

bool SymbolTableBuilder::HasLongUnsized() {
  std::ranges::sort(functions_, Before);
  EndUnsizedAtNext();
  return std::ranges::any_of(functions_,
                             [](const Function& f) { return !f.sized && f.size >= kLongUnsized; });
}

bool SymbolTableBuilder::IsOfOneKind(const Function& a, const Function& b) {
  return a.typed == b.typed && a.binding == b.binding;
}

void SymbolTableBuilder::DropCoveredAndAliases() {
  uint64_t covered_until = 0;  // by functions with sizes
  size_t kept = 0;
  size_t names = 0;  // of the last one
  for (const Function& f : functions_) {
    const bool covered = !f.sized && f.start < covered_until;
    if (f.sized) covered_until = std::max(covered_until, f.end());
    if (covered) continue;
    const Function* const last = kept == 0 ? nullptr : &functions_[kept - 1];
    const bool alias = last != nullptr && last->start == f.start && last->size == f.size;
    if (alias && (names == SymbolTable::kMostNames || !IsOfOneKind(*last, f))) continue;
    names = alias ? names + 1 : 1;
    functions_[kept++] = f;
  }
  functions_.resize(kept);
}

void SymbolTableBuilder::WriteEntries(SymbolTable& table) {
  table.entries_at_ = put_ + buffer_.size();
  table.page_starts_.reserve(functions_.size() / SymbolTable::kPage + 1);
  std::vector<uint32_t> open;  // entries that contain the current start, outermost first
  for (uint32_t i = 0; i < functions_.size(); ++i) {
    const Function& f = functions_[i];
    while (!open.empty() && functions_[open.back()].end() <= f.start) open.pop_back();
    if (!open.empty() && functions_[open.back()].start == f.start &&
        functions_[open.back()].size == f.size) {
      open.pop_back();  // another name of it
    }
    const SymbolTable::Entry entry{.start = f.start,
                                   .size = f.size,
                                   .name = f.name,
                                   .enclosing = open.empty() ? SymbolTable::kNone : open.back()};
    if (i % SymbolTable::kPage == 0) table.page_starts_.push_back(f.start);
    Write(std::as_bytes(std::span(&entry, 1)));
    if (open.size() < SymbolTable::kMostNesting) open.push_back(i);
  }
}

void SymbolTableBuilder::SortSources() {
  std::ranges::stable_sort(sources_, {}, &SymbolTable::Source::start);
  // Not std::ranges::unique: clang 14, which checks and fuzzes this code, cannot compile subranges.
  const auto is_same = [](const auto& a, const auto& b) { return a.start == b.start; };
  sources_.erase(std::unique(sources_.begin(), sources_.end(), is_same), sources_.end());
}

void SymbolTableBuilder::WriteSources(SymbolTable& table) {
  SortSources();
  for (size_t i = 0; i < sources_.size(); i += SymbolTable::kPage) {
    table.source_starts_.push_back(sources_[i].start);
  }
  table.sources_ = sources_.size();
  table.texts_ = texts_.size();
  Write(std::as_bytes(std::span(sources_)));
  Write(std::as_bytes(std::span(texts_)));
}

}  // namespace pyrometer
