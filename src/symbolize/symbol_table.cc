// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "symbolize/better_name.h"
#include "symbolize/demangle.h"
#include "symbolize/source_record.h"

namespace pyrometer {
namespace {

constexpr size_t kUsualName = 256;  // bytes
constexpr size_t kMaxName = 4096;   // longer ones are cut
constexpr size_t kKeptInMemory = size_t{64} << 10;
constexpr std::string_view kKnownNames[] = {"[plt]", "_init", "_fini", "_start", ""};

}  // namespace

std::shared_ptr<SpilledBytes> SymbolTableOptions::Storage() const {
  return std::make_shared<SpilledBytes>(SpilledBytes::Options{.file = spill,
                                                              .most_spilled = most_spilled,
                                                              .most_in_memory = most_in_memory,
                                                              .kept_in_memory = kKeptInMemory});
}

Result<SymbolTable> SymbolTable::From(const Layout& layout,
                                      std::shared_ptr<const SpilledBytes> bytes) {
  const Error malformed = Fail(ErrorCode::kMalformed, "not the bytes of a symbol table");
  uint64_t rest = bytes->size() - std::min(bytes->size(), layout.entries_at);
  const auto take = [&rest](uint64_t count, uint64_t size) {
    const bool is_there = count <= rest / size;
    if (is_there) rest -= count * size;
    return is_there;
  };
  if (!take(layout.size, sizeof(Entry)) || !take(layout.sources, sizeof(Source)) ||
      !take(layout.texts, sizeof(uint32_t)) || rest != 0 || layout.sources > kMostSources) {
    return malformed;
  }
  SymbolTable table;
  table.base_ = layout.base;
  table.size_ = layout.size;
  table.has_names_ = layout.has_names;
  table.unread_debug_info_ = layout.unread_debug_info;
  if (layout.size == 0) return table;
  table.entries_at_ = layout.entries_at;
  table.sources_ = layout.sources;
  table.texts_ = layout.texts;
  table.stored_ = std::move(bytes);
  if (!table.ReadPageStarts()) return malformed;
  return table;
}

Result<void> SymbolTable::ReadPageStarts() {
  const Error unreadable = Fail(ErrorCode::kMalformed, "not the pages of a symbol table");
  for (size_t first = 0; first < size_; first += kPage) {
    const std::vector<Entry> of_page = Entries(first, 1);
    if (of_page.empty()) return unreadable;
    page_starts_.push_back(of_page.front().start);
  }
  for (size_t first = 0; first < sources_; first += kPage) {
    const std::vector<Source> of_page = Sources(first, 1);
    if (of_page.empty()) return unreadable;
    source_starts_.push_back(of_page.front().start);
  }
  page_starts_.shrink_to_fit();
  source_starts_.shrink_to_fit();
  if (std::ranges::is_sorted(page_starts_) && std::ranges::is_sorted(source_starts_)) return {};
  return unreadable;
}

std::optional<Symbol> SymbolTable::Find(ElfAddress address) const {
  const uint64_t offset = address.value() - base_;  // wraps below base_, which is out of range
  if (offset > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  std::optional<uint32_t> index = LastAtOrBelow(static_cast<uint32_t>(offset));
  for (size_t nesting = 0; index && nesting <= kMostNesting; ++nesting) {
    const std::vector<Entry> found = Entries(*index, 1);
    if (found.empty()) break;
    const Entry& entry = found.front();
    if (offset - entry.start >= entry.size) {
      // What encloses it comes before it; nothing does if this is kNone.
      if (entry.enclosing >= *index) break;
      index = entry.enclosing;
      continue;
    }
    std::string name = entry.name == kUnnamed ? "" : BestName(*index, entry);
    if (name.empty() && entry.name != kUnnamed) break;
    return Symbol{
        .name = std::move(name), .start = ElfAddress(base_ + entry.start), .size = entry.size};
  }
  return std::nullopt;
}

std::optional<uint32_t> SymbolTable::LastAtOrBelow(uint32_t offset) const {
  const auto next_page = std::ranges::upper_bound(page_starts_, offset);
  if (next_page == page_starts_.begin()) return std::nullopt;
  const size_t first = static_cast<size_t>(next_page - page_starts_.begin() - 1) * kPage;
  const std::vector<Entry> page = Entries(first, std::min(kPage, size_ - first));
  const auto next = std::ranges::upper_bound(page, offset, {}, &Entry::start);
  if (next == page.begin()) return std::nullopt;
  return static_cast<uint32_t>(first + static_cast<size_t>(next - page.begin()) - 1);
}

// Empty if they cannot be read.
std::vector<SymbolTable::Entry> SymbolTable::Entries(size_t first, size_t count) const {
  std::vector<Entry> entries(count);
  const uint64_t at = entries_at_ + first * sizeof(Entry);
  if (!stored_->Read(at, std::as_writable_bytes(std::span(entries)))) entries.clear();
  return entries;
}

// Of the names that the function has, of which the last is at `index`.
std::string SymbolTable::BestName(uint32_t index, const Entry& entry) const {
  const size_t first = index - std::min<size_t>(index, kMostNames - 1);
  std::string best;
  const std::vector<Entry> entries = Entries(first, index - first + 1);
  for (auto e = entries.rbegin(); e != entries.rend(); ++e) {
    if (e->start != entry.start || e->size != entry.size) break;
    std::string name = NameAt(e->name);
    if (best.empty() || BetterName(name, best)) best = std::move(name);
  }
  return best;
}

// "memcpy@@GLIBC_2.14" is called memcpy, a stub that calls it "memcpy@plt".
std::string SymbolTable::NameAt(uint32_t offset) const {
  if (offset >= kFirstKnown) return std::string(kKnownNames[offset - kFirstKnown]);
  std::string name = StringAt(offset, kMaxName);
  const size_t size = WithoutVersion(name).size();
  if (std::string_view(name).substr(size) != kStubMark) name.resize(size);
  return name;
}

// Up to its NUL.
std::string SymbolTable::StringAt(uint64_t offset, size_t longest) const {
  if (offset >= entries_at_) return {};
  std::string text;
  for (const size_t most : {kUsualName, longest}) {
    text.resize(std::min<uint64_t>(most, entries_at_ - offset));
    if (!stored_->Read(offset, std::as_writable_bytes(std::span(text)))) return {};
    const size_t size = ::strnlen(text.data(), text.size());
    const bool is_whole = size < text.size();
    text.resize(size);
    if (is_whole) break;
  }
  return text;
}

std::vector<SourceLine> SymbolTable::LinesAt(ElfAddress address) const {
  const uint64_t offset = address.value() - base_;  // wraps below base_, which is out of range
  if (offset > std::numeric_limits<uint32_t>::max()) return {};
  const std::optional<Source> source = SourceAt(static_cast<uint32_t>(offset));
  if (!source) return {};
  std::vector<SourceLine> lines;
  for (const SourcePlace& place : PlacesAt(RecordOf(*source), offset - source->start)) {
    std::string function = place.name ? Text(*place.name) : "";
    if (place.name && function.empty()) function = "[unknown]";
    lines.push_back({.function = std::move(function),
                     .file = place.place.file ? Text(*place.place.file) : "",
                     .line = place.place.line,
                     .start_line = place.start_line});
  }
  return lines;
}

std::optional<SymbolTable::Source> SymbolTable::SourceAt(uint32_t offset) const {
  const auto next_page = std::ranges::upper_bound(source_starts_, offset);
  if (next_page == source_starts_.begin()) return std::nullopt;
  const size_t first = static_cast<size_t>(next_page - source_starts_.begin() - 1) * kPage;
  const std::vector<Source> page = Sources(first, std::min<uint64_t>(kPage, sources_ - first));
  const auto next = std::ranges::upper_bound(page, offset, {}, &Source::start);
  if (next == page.begin()) return std::nullopt;
  const Source& source = *std::prev(next);
  return offset - source.start < source.size ? std::optional(source) : std::nullopt;
}

// Empty if it cannot be read.
std::vector<std::byte> SymbolTable::RecordOf(const Source& source) const {
  constexpr size_t kUsualRecord = 512;
  if (source.record >= entries_at_) return {};
  const uint64_t room = entries_at_ - source.record;
  std::vector<std::byte> record(std::min<uint64_t>(kUsualRecord, room));
  if (!stored_->Read(source.record, record)) return {};
  const size_t size = SizeOfSourceRecord(record).value_or(0);
  if (size > room) return {};
  if (size <= record.size()) return record;
  record.resize(size);
  if (!stored_->Read(source.record, record)) record.clear();
  return record;
}

std::string SymbolTable::Text(uint32_t number) const {
  if (number >= texts_) return {};
  uint32_t at = 0;
  const uint64_t where = texts_at() + number * sizeof(at);
  const bool is_read = stored_->Read(where, std::as_writable_bytes(std::span(&at, 1)));
  return is_read ? StringAt(at, kMostText) : std::string();
}

// Empty if they cannot be read.
std::vector<SymbolTable::Source> SymbolTable::Sources(size_t first, size_t count) const {
  std::vector<Source> sources(count);
  const uint64_t at = sources_at() + first * sizeof(Source);
  if (!stored_->Read(at, std::as_writable_bytes(std::span(sources)))) sources.clear();
  return sources;
}

}  // namespace pyrometer
