// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_sources.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "binary/dwarf_functions.h"
#include "binary/segments.h"
#include "symbolize/source_record.h"

namespace pyrometer {
namespace {

// Of compressed debug information. A reader of a large file may take 96 MiB.
constexpr size_t kMostInflatedDwarf = size_t{48} << 20;
// A look-up reads a record as far as to the row that it is for.
constexpr size_t kRowsOfRecord = 64;
constexpr uint32_t kMostTextsOfDwarf = uint32_t{1} << 21;

// Makes records, and numbers the texts of all of them.
class Records {
 public:
  Records(DwarfFunctions& functions, SymbolTableBuilder& builder)
      : functions_(functions), builder_(builder) {}

  // False if there is no room.
  bool Add(const DwarfCode& code) {
    if (functions_.unit_number() != unit_) {
      unit_ = functions_.unit_number();
      files_.clear();
    }
    for (size_t first = 0; first < code.rows.size(); first += kRowsOfRecord) {
      const size_t count = std::min(kRowsOfRecord, code.rows.size() - first);
      const std::span<const DwarfRow> rows = std::span(code.rows).subspan(first, count);
      const CodeRange range{rows.front().begin, rows.back().end};
      if (!builder_.AddSource(range, RecordOf(code, rows))) return false;
    }
    return next_text_ < kMostTextsOfDwarf;
  }

  // The names of functions, in the order of the file.
  void PutNames() { Put(names_); }
  // Those that are known until the end of the unit only.
  void PutNamesOfUnit() { Put(names_of_unit_); }

 private:
  using Names = absl::flat_hash_map<DwarfName, uint32_t>;

  void Put(Names& names) {
    std::vector<std::pair<DwarfName, uint32_t>> all(names.begin(), names.end());
    std::ranges::sort(all);
    for (const auto& [name, number] : all) builder_.PutText(number, functions_.NameAt(name));
    names.clear();
  }

  // With those calls only that the rows are in.
  SourceRecord RecordOf(const DwarfCode& code, std::span<const DwarfRow> rows) {
    SourceRecord record{.start_line = code.start_line, .calls = {}, .rows = {}};
    calls_.clear();
    for (const DwarfRow& row : rows) {
      std::optional<uint32_t> call;
      if (row.inlined) call = CallOf(code, *row.inlined, record);
      record.rows.push_back(
          {.size = row.end.value() - row.begin.value(), .call = call, .place = PlaceOf(row.place)});
    }
    return record;
  }

  // Its number in the record. Those around it come first.
  uint32_t CallOf(const DwarfCode& code, uint32_t call, SourceRecord& record) {
    std::vector<uint32_t> missing;
    std::optional<uint32_t> within;
    // Each is within one before it.
    for (std::optional<uint32_t> next = call; next; next = code.calls[*next].within) {
      const auto known = calls_.find(*next);
      if (known != calls_.end()) {
        within = known->second;
        break;
      }
      missing.push_back(*next);
    }
    for (; !missing.empty(); missing.pop_back()) {
      const DwarfInlinedCall& of = code.calls[missing.back()];
      const auto number = static_cast<uint32_t>(record.calls.size());
      record.calls.push_back({.name = NumberOf(of.name),
                              .within = within,
                              .from = PlaceOf(of.from),
                              .start_line = of.start_line});
      calls_[missing.back()] = number;
      within = number;
    }
    return *within;
  }

  SourceRecord::Place PlaceOf(const DwarfPlace& place) {
    return {.file = place.file ? NumberOf(*place.file) : std::nullopt, .line = place.line};
  }

  // Of a file of the unit: paths that are equal have one number.
  std::optional<uint32_t> NumberOf(uint32_t file) {
    const auto [known, is_new] = files_.try_emplace(file);
    if (!is_new) return known->second;
    const std::string path = functions_.PathOf(file);
    if (path.empty()) return std::nullopt;
    const auto [number, is_first] = paths_.try_emplace(absl::HashOf(path), next_text_);
    if (is_first) builder_.PutText(next_text_++, path);
    return known->second = number->second;
  }

  uint32_t NumberOf(const DwarfName& name) {
    Names& names = name.in == DwarfName::In::kUnit ? names_of_unit_ : names_;
    const auto [known, is_new] = names.try_emplace(name, next_text_);
    if (is_new) ++next_text_;
    return known->second;
  }

  DwarfFunctions& functions_;
  SymbolTableBuilder& builder_;
  uint64_t unit_ = 0;
  uint32_t next_text_ = 0;
  absl::flat_hash_map<uint32_t, std::optional<uint32_t>> files_;  // of the unit
  absl::flat_hash_map<size_t, uint32_t> paths_;                   // by a hash of the path
  Names names_;
  Names names_of_unit_;
  absl::flat_hash_map<uint32_t, uint32_t> calls_;  // of the record, by their number in the code
};

}  // namespace

Result<void> AddDwarfSources(const ElfFile& elf, const DwarfFile& file,
                             SymbolTableBuilder& builder) {
  // Where a linker left functions out, debug information may say that they lie at 0: which may be
  // in an executable segment, but in no section of code.
  std::vector<CodeRange> ranges;
  for (const Section& section : file.sections->all()) {
    const Elf64_Shdr& header = section.header;
    if ((header.sh_flags & SHF_EXECINSTR) == 0 || header.sh_addr == 0) continue;
    ranges.push_back({ElfAddress(header.sh_addr), ElfAddress(header.sh_addr + header.sh_size)});
  }
  std::ranges::sort(ranges, {}, &CodeRange::begin);
  const auto is_code = [&](ElfAddress address) {
    const auto behind = std::ranges::upper_bound(ranges, address, {}, &CodeRange::begin);
    return behind != ranges.begin() && address < std::prev(behind)->end &&
           ExecutableSegmentAt(elf.segments(), address) != nullptr;
  };
  ASSIGN_OR_RETURN(DwarfFunctions functions,
                   DwarfFunctions::Open(file, is_code, kMostInflatedDwarf));
  Records records(functions, builder);
  bool has_room = true;
  RETURN_IF_ERROR(
      functions.ForEach([&](const DwarfCode& code) { return has_room = records.Add(code); },
                        [&] { records.PutNamesOfUnit(); }));
  if (!has_room) return Fail(ErrorCode::kExhausted, "no room for the source of all functions");
  records.PutNames();
  return {};
}

}  // namespace pyrometer
