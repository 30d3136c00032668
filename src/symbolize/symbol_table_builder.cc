// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "symbolize/better_name.h"

namespace pyrometer {
namespace {

// Above what the largest known executables have (a debug build of Chromium: 3 million).
constexpr size_t kMaxFunctions = size_t{4} << 20;
constexpr size_t kMaxNameBytes = size_t{256} << 20;
constexpr size_t kMaxNesting = 32;

}  // namespace

Result<void> SymbolTableBuilder::Add(const DeclaredFunction& function, std::string_view name) {
  if (function.limit <= function.start || name.empty()) return {};
  if (candidates_.size() >= kMaxFunctions || names_.size() + name.size() >= kMaxNameBytes) {
    return Fail(ErrorCode::kExhausted, "more than {} functions or {} bytes of names", kMaxFunctions,
                kMaxNameBytes);
  }
  const uint64_t start = function.start.value();
  const uint64_t room = function.limit.value() - start;
  candidates_.push_back(
      {.start = start,
       .end = function.size == 0 ? function.limit.value() : start + std::min(function.size, room),
       .name = static_cast<uint32_t>(names_.size()),
       .binding = function.binding,
       .typed = function.typed,
       .sized = function.size != 0});
  names_.append(name).push_back('\0');
  return {};
}

SymbolTable SymbolTableBuilder::Build() && {
  SymbolTable table;
  if (candidates_.empty()) return table;
  std::ranges::sort(candidates_,
                    [this](const Candidate& a, const Candidate& b) { return Before(a, b); });
  EndUnsizedAtNext();
  DropCoveredAndAliases();
  table.base_ = candidates_.front().start;
  constexpr uint64_t kReach = std::numeric_limits<uint32_t>::max();
  std::erase_if(candidates_, [&](const Candidate& c) { return c.start - table.base_ > kReach; });
  FillNames(table);
  FillEntries(table);
  return table;
}

// By start; enclosing before enclosed; of equal ranges the best name first. Unsized ones last.
bool SymbolTableBuilder::Before(const Candidate& a, const Candidate& b) const {
  if (a.start != b.start) return a.start < b.start;
  if (a.sized != b.sized) return a.sized;
  if (a.end != b.end) return a.end > b.end;
  return Better(a, b);
}

bool SymbolTableBuilder::Better(const Candidate& a, const Candidate& b) const {
  if (a.typed != b.typed) return a.typed;
  if (a.binding != b.binding) return a.binding < b.binding;
  return BetterName(NameOf(a), NameOf(b));
}

void SymbolTableBuilder::EndUnsizedAtNext() {
  uint64_t next = std::numeric_limits<uint64_t>::max();  // the start above the current one
  uint64_t current = next;
  for (auto c = candidates_.rbegin(); c != candidates_.rend(); ++c) {
    if (c->start != current) next = std::exchange(current, c->start);
    if (!c->sized) c->end = std::min(c->end, next);
  }
}

void SymbolTableBuilder::DropCoveredAndAliases() {
  uint64_t covered_until = 0;  // by functions with sizes
  const Candidate* last = nullptr;
  size_t kept = 0;
  for (const Candidate& c : candidates_) {
    const bool covered = !c.sized && c.start < covered_until;
    const bool alias = last != nullptr && last->start == c.start && last->end == c.end;
    if (c.sized) covered_until = std::max(covered_until, c.end);
    if (covered || alias) continue;
    candidates_[kept] = c;
    last = &candidates_[kept++];
  }
  candidates_.resize(kept);
}

// Moves the names that are still wanted together. They are in file order, so each moves down.
void SymbolTableBuilder::FillNames(SymbolTable& table) {
  std::vector<Candidate*> by_name;
  by_name.reserve(candidates_.size());
  for (Candidate& c : candidates_) by_name.push_back(&c);
  std::ranges::sort(by_name, {}, [](const Candidate* c) { return c->name; });
  size_t end = 0;
  for (Candidate* const c : by_name) {
    const size_t length = NameOf(*c).size() + 1;
    std::copy_n(names_.begin() + c->name, length, names_.begin() + static_cast<ptrdiff_t>(end));
    c->name = static_cast<uint32_t>(end);
    end += length;
  }
  names_.resize(end);
  names_.shrink_to_fit();
  table.names_ = std::move(names_);
}

void SymbolTableBuilder::FillEntries(SymbolTable& table) const {
  constexpr uint64_t kReach = std::numeric_limits<uint32_t>::max();
  table.entries_.reserve(candidates_.size());
  std::vector<uint32_t> open;  // entries that contain the current start, outermost first
  for (const Candidate& c : candidates_) {
    while (!open.empty() && candidates_[open.back()].end <= c.start) open.pop_back();
    table.entries_.push_back({.start = static_cast<uint32_t>(c.start - table.base_),
                              .size = static_cast<uint32_t>(std::min(c.end - c.start, kReach)),
                              .name = c.name,
                              .enclosing = open.empty() ? SymbolTable::kNone : open.back()});
    if (open.size() < kMaxNesting) {
      open.push_back(static_cast<uint32_t>(table.entries_.size() - 1));
    }
  }
}

}  // namespace pyrometer
