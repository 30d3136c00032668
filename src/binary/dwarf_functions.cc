// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf_functions.h"

#include <dwarf.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "binary/dwarf/entry.h"
#include "binary/dwarf/inline_cover.h"
#include "binary/dwarf/line_table.h"
#include "binary/dwarf/scope_walk.h"
#include "binary/dwarf/section.h"
#include "binary/dwarf/unit_source.h"
#include "binary/dwarf_cursor.h"

namespace pyrometer {
namespace {

using Attribute = DwarfAttribute;

constexpr uint64_t kMostOfUnit = uint64_t{32} << 20;      // bytes
constexpr size_t kMostScopes = size_t{1} << 20;           // of names, in a unit
constexpr size_t kMostNameDepth = 32;                     // of these in each other
constexpr size_t kMostEntryDepth = 4096;                  // of entries in entries
constexpr size_t kMostCallsOfFunction = size_t{1} << 18;  // in a function
constexpr size_t kMostInlinedRanges = size_t{1} << 20;    // likewise
// Code of which only lines are known comes in pieces of so many rows.
constexpr size_t kMostRowsWithoutFunction = 4096;

uint32_t ToNumber(const DwarfValue& value) {
  const bool is_number =
      value.kind == DwarfClass::kConstant && value.number < std::numeric_limits<uint32_t>::max();
  return is_number ? static_cast<uint32_t>(value.number) : 0;
}

// Entries of types have none below them that tell of code.
bool HasNoCode(uint64_t tag) {
  switch (tag) {
    case DW_TAG_enumeration_type:
    case DW_TAG_array_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_call_site:
    case DW_TAG_GNU_call_site:
    case DW_TAG_formal_parameter:
    case DW_TAG_variable:
      return true;
    default:
      return false;
  }
}

// Of the scope of `inner` that has no name.
std::string NameOfNameless(bool is_namespace, std::string_view inner) {
  if (is_namespace) return "(anonymous namespace)";
  return inner.starts_with("operator()") ? "{lambda}" : "(anonymous class)";
}

}  // namespace

struct DwarfFunctions::Parts {
  Parts(DwarfSections opened, std::function<bool(ElfAddress)> code)
      : sections(std::move(opened)), is_code(std::move(code)), units(sections), walk(units) {
    if (units.alternate() != nullptr) alternate_walk.emplace(*units.alternate());
  }

  DwarfSections sections;
  std::function<bool(ElfAddress)> is_code;
  DwarfUnits units;
  std::vector<std::byte> bytes;  // of the unit that is read
  DwarfLineTable lines;          // likewise
  // Likewise: where names of functions are that have no other.
  struct Scope {
    size_t around = 0;  // 0: none
    DwarfScope scope{};
  };
  std::vector<Scope> scopes{1};
  absl::flat_hash_map<uint64_t, size_t> scope_of;  // by entry
  absl::flat_hash_map<uint64_t, DwarfName> plain;  // that of an entry, without scopes
  // The same for entries of all other units, of which nothing is noted.
  DwarfScopeWalk walk;
  std::optional<DwarfScopeWalk> alternate_walk;
};

// Reads the entries of one unit.
class DwarfUnitReader {
 public:
  using Visitor = DwarfFunctions::Visitor;

  DwarfUnitReader(DwarfFunctions::Parts& parts, const DwarfUnitContext& context,
                  const Visitor& visit)
      : parts_(parts), context_(context), visit_(visit) {}

  // False: no more is wanted. `is_whole` gets false if the unit is damaged.
  bool Read(bool& is_whole) {
    const DwarfUnit& unit = context_.unit;
    DwarfCursor cursor(parts_.bytes, unit.entries - unit.offset);
    DwarfEntry entry;
    while (goes_on_ && !cursor.AtEnd()) {
      if (!context_.abbreviations->ReadEntry(cursor, unit, unit.offset, entry)) {
        if (!cursor.ok()) break;
        if (!scopes_.empty()) Leave();
        continue;
      }
      Enter(entry, cursor);
      if (scopes_.size() > kMostEntryDepth) break;
    }
    is_whole = cursor.ok() && scopes_.size() <= kMostEntryDepth;
    while (!scopes_.empty()) Leave();
    if (goes_on_ && !context_.is_partial) VisitRest();
    return goes_on_;
  }

 private:
  struct Function {
    std::vector<DwarfRange> ranges;
    uint32_t start_line = 0;
    std::vector<DwarfInlinedCall> calls;
    std::vector<DwarfInlinedRange> inlined;
  };
  // An entry that has others below it.
  struct Scope {
    bool is_function = false;
    std::optional<uint32_t> call{};  // of the function around it, the innermost
    size_t names = 0;                // the innermost scope of names
  };

  void Enter(const DwarfEntry& entry, DwarfCursor& cursor) {
    Scope scope;
    if (!scopes_.empty()) {
      scope.call = scopes_.back().call;
      scope.names = scopes_.back().names;
    }
    if (context_.has_scopes && IsDwarfScope(entry.tag)) NoteScope(entry, scope.names);
    if (entry.tag == DW_TAG_subprogram) {
      scope.call = std::nullopt;
      const bool is_declaration = entry.Get(Attribute::kIsDeclaration).number != 0;
      scope.is_function = !is_declaration && BeginFunction(entry);
      if (scope.is_function && !entry.has_children) EndFunction();
      // Below one that has no code itself may be a lambda's that has.
      if (is_declaration && SkipChildren(entry, cursor)) return;
    } else if (entry.tag == DW_TAG_inlined_subroutine && !functions_.empty()) {
      scope.call = AddCall(entry, scope.call);
    } else if (HasNoCode(entry.tag) && SkipChildren(entry, cursor)) {
      return;
    }
    if (entry.has_children) scopes_.push_back(scope);
  }

  void Leave() {
    if (scopes_.back().is_function) EndFunction();
    scopes_.pop_back();
  }

  // Of a function it notes in which scope it is, if it may have to be told; of all, where those
  // below it are.
  void NoteScope(const DwarfEntry& entry, size_t& names) {
    if (parts_.scopes.size() >= kMostScopes) return;
    const bool is_told = entry.tag == DW_TAG_subprogram && entry.Get(Attribute::kName) &&
                         !entry.Get(Attribute::kLinkageName);
    if (is_told && names != 0) parts_.scope_of[entry.offset] = names;
    const std::optional<DwarfScope> scope = parts_.units.ScopeOf(entry, context_);
    if (!scope) return;
    parts_.scopes.push_back({.around = names, .scope = *scope});
    names = parts_.scopes.size() - 1;
  }

  DwarfName NameOf(const DwarfOrigin& origin) {
    const bool is_whole =
        origin.is_linkage_name || !context_.has_scopes || origin.name.in == DwarfName::In::kNowhere;
    if (is_whole) return origin.name;
    const bool is_own = !origin.is_named_by_alternate && origin.named_by >= context_.unit.offset &&
                        origin.named_by < context_.unit.end;
    if (!is_own) return {DwarfName::In::kEntry, origin.is_named_by_alternate, origin.named_by};
    parts_.plain[origin.named_by] = origin.name;
    return {DwarfName::In::kUnit, false, origin.named_by};
  }

  // False if there is no telling where they end.
  bool SkipChildren(const DwarfEntry& entry, DwarfCursor& cursor) const {
    const DwarfValue sibling = entry.Get(Attribute::kSibling);
    if (!entry.has_children || sibling.kind != DwarfClass::kEntry) return false;
    const uint64_t at = sibling.number - context_.unit.offset;  // wraps if it lies before
    if (at <= cursor.position() || at > parts_.bytes.size()) return false;
    cursor = DwarfCursor(parts_.bytes, at);
    return true;
  }

  // False if it has no code.
  bool BeginFunction(const DwarfEntry& entry) {
    std::vector<DwarfRange> ranges = parts_.units.RangesOf(entry, context_);
    std::erase_if(ranges,
                  [&](const DwarfRange& r) { return !parts_.is_code(ElfAddress(r.begin)); });
    if (ranges.empty()) return false;
    Function& function = functions_.emplace_back();
    function.ranges = std::move(ranges);
    function.start_line = parts_.units.OriginOf(entry, context_, parts_.bytes).start_line;
    return true;
  }

  std::optional<uint32_t> AddCall(const DwarfEntry& entry, std::optional<uint32_t> within) {
    Function& function = functions_.back();
    const std::vector<DwarfRange> ranges = parts_.units.RangesOf(entry, context_);
    const bool has_room = function.calls.size() < kMostCallsOfFunction &&
                          function.inlined.size() + ranges.size() <= kMostInlinedRanges;
    if (!has_room) return within;
    const DwarfOrigin origin = parts_.units.OriginOf(entry, context_, parts_.bytes);
    const auto number = static_cast<uint32_t>(function.calls.size());
    DwarfInlinedCall& call = function.calls.emplace_back();
    call.name = NameOf(origin);
    call.start_line = origin.start_line;
    if (within && *within < number) call.within = within;
    const DwarfValue file = entry.Get(Attribute::kCallFile);
    if (file) call.from.file = ToNumber(file);
    call.from.line = ToNumber(entry.Get(Attribute::kCallLine));
    for (const DwarfRange& range : ranges) {
      function.inlined.push_back({.begin = range.begin, .end = range.end, .call = number});
    }
    return number;
  }

  void EndFunction() {
    Function function = std::move(functions_.back());
    functions_.pop_back();
    for (const DwarfRange& range : function.ranges) {
      if (!goes_on_) return;
      std::vector<DwarfInlinedRange> inlined;
      std::ranges::copy_if(
          function.inlined, std::back_inserter(inlined),
          [&](const DwarfInlinedRange& r) { return r.begin < range.end && range.begin < r.end; });
      covered_.push_back(range);
      goes_on_ = visit_({.begin = ElfAddress(range.begin),
                         .end = ElfAddress(range.end),
                         .is_function = true,
                         .start_line = function.start_line,
                         .calls = function.calls,
                         .rows = RowsOf(range.begin, range.end, inlined, parts_.lines.rows())});
    }
  }

  // Code that has lines and is no function's: of assembly, or of split units.
  void VisitRest() {
    const std::vector<DwarfLineTable::Row>& lines = parts_.lines.rows();
    std::ranges::sort(covered_, {}, &DwarfRange::begin);
    auto covered = covered_.begin();
    DwarfCode code{.is_function = false};
    uint64_t covered_until = 0;
    for (size_t i = 0; goes_on_ && i + 1 < lines.size(); ++i) {
      const uint64_t begin = lines[i].address;
      for (; covered != covered_.end() && covered->begin <= begin; ++covered) {
        covered_until = std::max(covered_until, covered->end);
      }
      const bool is_known = lines[i].file != DwarfLineTable::kNoFile && begin >= covered_until &&
                            begin < lines[i + 1].address;
      const bool joins =
          is_known && code.end == ElfAddress(begin) && code.rows.size() < kMostRowsWithoutFunction;
      if (!joins) VisitLines(code);
      if (!is_known) continue;
      if (code.rows.empty()) code.begin = ElfAddress(begin);
      code.end = ElfAddress(lines[i + 1].address);
      code.rows.push_back({.begin = ElfAddress(begin),
                           .end = code.end,
                           .place = {.file = lines[i].file, .line = lines[i].line}});
    }
    if (goes_on_) VisitLines(code);
  }

  void VisitLines(DwarfCode& code) {
    if (!code.rows.empty()) goes_on_ = visit_(code);
    code = {.is_function = false};
  }

  DwarfFunctions::Parts& parts_;
  const DwarfUnitContext& context_;
  const Visitor& visit_;
  std::vector<Scope> scopes_;
  std::vector<Function> functions_;  // within each other
  std::vector<DwarfRange> covered_;  // by functions
  bool goes_on_ = true;
};

DwarfFunctions::DwarfFunctions(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
DwarfFunctions::DwarfFunctions(DwarfFunctions&&) noexcept = default;
DwarfFunctions& DwarfFunctions::operator=(DwarfFunctions&&) noexcept = default;
DwarfFunctions::~DwarfFunctions() = default;

Result<DwarfFunctions> DwarfFunctions::Open(const DwarfFile& file,
                                            std::function<bool(ElfAddress)> is_code,
                                            size_t most_inflated) {
  ASSIGN_OR_RETURN(DwarfSections opened, DwarfSections::Open(file, most_inflated));
  return DwarfFunctions(std::make_unique<Parts>(std::move(opened), std::move(is_code)));
}

Result<void> DwarfFunctions::ForEach(const Visitor& visit, const std::function<void()>& end_unit) {
  Parts& parts = *parts_;
  RETURN_IF_ERROR(parts.units.Find());
  for (const uint64_t offset : parts.units.offsets()) {
    ++counts_.units;
    const Result<DwarfUnitContext> context = parts.units.Open(offset);
    if (!context) {
      ++counts_.unreadable;
      continue;
    }
    const uint64_t size = context->unit.end - offset;
    const bool is_type = context->unit.type == DW_UT_type || context->unit.type == DW_UT_split_type;
    if (is_type) continue;
    if (size > kMostOfUnit) {
      ++counts_.unreadable;
      continue;
    }
    RETURN_IF_ERROR(parts.sections.info.Read(offset, size, parts.bytes));
    parts.units.ForgetOrigins();
    parts.lines = {};
    parts.scopes.resize(1);
    parts.scope_of.clear();
    parts.plain.clear();
    bool is_whole = true;
    if (context->lines && !context->is_partial) {
      Result<DwarfLineTable> lines =
          DwarfLineTable::Read(parts.sections, *context->lines, context->directory, parts.is_code);
      is_whole = lines.has_value();
      if (lines) parts.lines = *std::move(lines);
    }
    bool are_entries_whole = true;
    const bool goes_on = DwarfUnitReader(parts, *context, visit).Read(are_entries_whole);
    counts_.split += context->is_split ? 1 : 0;
    counts_.unreadable += is_whole && are_entries_whole ? 0 : 1;
    if (end_unit) end_unit();
    if (!goes_on) break;
  }
  return {};
}

std::string DwarfFunctions::PathOf(uint32_t file) const {
  return parts_->lines.PathOf(file);
}

std::string DwarfFunctions::NameAt(const DwarfName& name) {
  if (name.in == DwarfName::In::kUnit) return NameOfUnit(name.offset);
  if (name.in == DwarfName::In::kEntry) return NameOfEntry(name);
  DwarfSection* const section = parts_->sections.SectionOf(name);
  return section == nullptr ? std::string() : std::string(section->TextAt(name.offset));
}

std::string DwarfFunctions::NameOfUnit(uint64_t entry) {
  const auto plain = parts_->plain.find(entry);
  if (plain == parts_->plain.end()) return {};
  const auto found = parts_->scope_of.find(entry);
  std::vector<DwarfScope> around;
  size_t scope = found == parts_->scope_of.end() ? 0 : found->second;
  for (; scope != 0 && around.size() < kMostNameDepth; scope = parts_->scopes[scope].around) {
    around.push_back(parts_->scopes[scope].scope);
  }
  return Qualified(plain->second, around);
}

std::string DwarfFunctions::NameOfEntry(const DwarfName& name) {
  if (name.is_alternate && !parts_->alternate_walk) return {};
  DwarfScopeWalk& walk = name.is_alternate ? *parts_->alternate_walk : parts_->walk;
  const std::optional<DwarfScopeWalk::Found> found = walk.Find(name.offset);
  return found ? Qualified(found->name, found->around) : std::string();
}

// "std::vector<int>::push_back". `around`: innermost first. One whose name is not at hand ends it.
std::string DwarfFunctions::Qualified(const DwarfName& of, std::span<const DwarfScope> around) {
  std::string name = NameAt(of);
  for (const DwarfScope& scope : around.first(std::min(around.size(), kMostNameDepth))) {
    std::string outer = NameAt(scope.name);
    if (outer.empty() && scope.has_name) break;
    if (outer.empty()) outer = NameOfNameless(scope.is_namespace, name);
    name.insert(0, outer.append("::"));
    if (name.size() > DwarfSection::kMostAtOnce) break;
  }
  name.resize(std::min(name.size(), DwarfSection::kMostAtOnce));
  return name;
}

}  // namespace pyrometer
