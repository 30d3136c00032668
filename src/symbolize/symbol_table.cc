// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "binary/byte_source.h"
#include "symbolize/better_name.h"
#include "symbolize/demangle.h"

namespace pyrometer {
namespace {

constexpr size_t kKeptInMemory = size_t{64} << 10;
constexpr size_t kUsualName = 256;  // bytes
constexpr size_t kMaxName = 4096;   // longer ones are cut
constexpr std::string_view kKnownNames[] = {"[plt]", "_init", "_fini", "_start", ""};

}  // namespace

std::shared_ptr<SpilledBytes> RoomFor(const SymbolTableOptions& options) {
  return std::make_shared<SpilledBytes>(
      SpilledBytes::Options{.file = options.spill,
                            .most_spilled = options.most_spilled,
                            .most_in_memory = options.most_in_memory,
                            .kept_in_memory = kKeptInMemory});
}

Result<SymbolTable> SymbolTable::From(SymbolTableShape shape,
                                      std::shared_ptr<const SpilledBytes> bytes) {
  if (shape.size > kMostEntries || shape.page_starts.size() != (shape.size + kPage - 1) / kPage ||
      !Within(shape.entries_at, shape.size * sizeof(Entry), bytes->size())) {
    return Fail(ErrorCode::kMalformed, "a symbol table of {} entries in {} bytes", shape.size,
                bytes->size());
  }
  SymbolTable table;
  table.shape_ = std::move(shape);
  if (!table.empty()) table.stored_ = std::move(bytes);
  return table;
}

std::optional<Symbol> SymbolTable::Find(ElfAddress address) const {
  const uint64_t offset =
      address.value() - shape_.base;  // wraps below shape_.base, which is out of range
  if (offset > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  std::optional<uint32_t> index = LastAtOrBelow(static_cast<uint32_t>(offset));
  for (size_t depth = 0; index && *index < shape_.size && depth <= kMaxNesting; ++depth) {
    const std::vector<Entry> found = Entries(*index, 1);
    if (found.empty()) break;
    const Entry& entry = found.front();
    if (offset - entry.start >= entry.size) {
      index = entry.enclosing;
      continue;
    }
    std::string name = entry.name == kUnnamed ? "" : NameOf(*index, entry);
    if (name.empty() && entry.name != kUnnamed) break;
    return Symbol{.name = std::move(name),
                  .start = ElfAddress(shape_.base + entry.start),
                  .size = entry.size};
  }
  return std::nullopt;
}

std::optional<uint32_t> SymbolTable::LastAtOrBelow(uint32_t offset) const {
  const auto next_page = std::ranges::upper_bound(shape_.page_starts, offset);
  if (next_page == shape_.page_starts.begin()) return std::nullopt;
  const size_t first = static_cast<size_t>(next_page - shape_.page_starts.begin() - 1) * kPage;
  const std::vector<Entry> page = Entries(first, std::min(kPage, shape_.size - first));
  const auto next = std::ranges::upper_bound(page, offset, {}, &Entry::start);
  if (next == page.begin()) return std::nullopt;
  return static_cast<uint32_t>(first + static_cast<size_t>(next - page.begin()) - 1);
}

// Empty if they cannot be read.
std::vector<SymbolTable::Entry> SymbolTable::Entries(size_t first, size_t count) const {
  std::vector<Entry> entries(count);
  const uint64_t at = shape_.entries_at + first * sizeof(Entry);
  if (!stored_->Read(at, std::as_writable_bytes(std::span(entries)))) entries.clear();
  return entries;
}

std::string SymbolTable::NameOf(uint32_t index, const Entry& entry) const {
  if (entry.enclosing != kStub && entry.enclosing != kIndirectStub) return BestName(index, entry);
  std::string name = entry.enclosing == kStub ? NameAt(entry.name) : NameOfTarget(entry);
  if (!name.empty()) name += kPltSuffix;
  return name;
}

std::string SymbolTable::NameOfTarget(const Entry& stub) const {
  const std::optional<uint32_t> index = LastAtOrBelow(stub.name);
  const std::vector<Entry> found = index ? Entries(*index, 1) : std::vector<Entry>();
  if (found.empty() || found.front().start != stub.name) return {};
  return BestName(*index, found.front());
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

// "memcpy@@GLIBC_2.14" is called memcpy.
std::string SymbolTable::NameAt(uint32_t offset) const {
  if (offset >= kFirstKnown) return std::string(kKnownNames[offset - kFirstKnown]);
  std::string name;
  for (const size_t most : {kUsualName, kMaxName}) {
    name.resize(std::min<uint64_t>(most, shape_.entries_at - offset));
    if (!stored_->Read(offset, std::as_writable_bytes(std::span(name)))) return {};
    const size_t size = ::strnlen(name.data(), name.size());
    const bool is_whole = size < name.size();
    name.resize(size);
    if (is_whole) break;
  }
  name.resize(std::min(name.size(), name.find('@', 1)));
  return name;
}

}  // namespace pyrometer
