// SPDX-License-Identifier: Apache-2.0
#include "symbolize/go_sources.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "binary/go_source_lines.h"
#include "binary/segments.h"
#include "binary/symbols.h"
#include "symbolize/source_record.h"

namespace pyrometer {
namespace {

// Some ten times what the largest programs have: no more are numbered.
constexpr uint32_t kMostTexts = 200'000;

// Numbers texts in the order in which they are met, and reads them in that of the file.
class Texts {
 public:
  explicit Texts(uint32_t& next) : next_(next) {}

  uint32_t NumberOf(uint32_t offset) {
    const auto [known, is_new] = numbers_.try_emplace(offset, next_);
    if (is_new) ++next_;
    return known->second;
  }

  void Put(const ElfFile& elf, const SymbolRange& range, SymbolTableBuilder& builder) const {
    std::vector<std::pair<uint32_t, uint32_t>> all(numbers_.begin(), numbers_.end());
    std::ranges::sort(all);
    SymbolNames names(elf, range);
    for (const auto& [offset, number] : all) {
      const Result<std::string_view> text = names.At(offset);
      builder.PutText(number, text ? *text : std::string_view());
    }
  }

 private:
  uint32_t& next_;
  absl::flat_hash_map<uint32_t, uint32_t> numbers_;  // by offset
};

SourceRecord ToRecord(const GoSource& source, Texts& names, Texts& files) {
  const auto place_of = [&](const GoSourcePlace& place) {
    std::optional<uint32_t> file;
    if (place.file) file = files.NumberOf(*place.file);
    return SourceRecord::Place{.file = file, .line = place.line};
  };
  SourceRecord record{.start_line = source.start_line, .calls = {}, .rows = {}};
  for (const GoInlinedCall& call : source.inlined) {
    record.calls.push_back({.name = names.NumberOf(call.name),
                            .within = call.within,
                            .from = place_of(call.call),
                            .start_line = call.start_line});
  }
  for (const GoSourceRow& row : source.rows) {
    record.rows.push_back(
        {.size = row.end - row.begin, .call = row.inlined, .place = place_of(row.place)});
  }
  return record;
}

}  // namespace

void AddGoSources(const ElfFile& elf, const SectionTable& sections, const GoFunctionTable& table,
                  SymbolTableBuilder& builder) {
  Result<GoSourceLines> lines = GoSourceLines::Open(elf, sections, table);
  if (!lines) return;
  uint32_t next_text = 0;
  Texts names(next_text);
  Texts files(next_text);
  bool has_room = true;
  const Result<void> visited = ForEachGoFunction(elf, table, [&](const GoFunction& function) {
    const bool is_code = ExecutableSegmentAt(elf.segments(), function.begin) != nullptr;
    if (!has_room || !is_code) return;
    const Result<GoSource> source = lines->Of(function);
    has_room = source || source.error().code() != ErrorCode::kExhausted;
    if (!source || source->rows.empty()) return;
    const SourceRecord record = ToRecord(*source, names, files);
    has_room = next_text < kMostTexts && builder.AddSource({function.begin, function.end}, record);
  });
  names.Put(elf, table.names, builder);
  files.Put(elf, lines->files(), builder);
  static_cast<void>(visited);  // those before the first that cannot be read are good
}

}  // namespace pyrometer
