// SPDX-License-Identifier: Apache-2.0
#include "symbolize/elf_symbols.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/debug_data.h"
#include "binary/go_functions.h"
#include "binary/plt_stubs.h"
#include "binary/sections.h"
#include "binary/segments.h"
#include "binary/symbols.h"
#include "symbolize/dwarf_sources.h"
#include "symbolize/go_sources.h"
#include "symbolize/symbol_table_builder.h"

namespace pyrometer {
namespace {

// Where a function without a size ends is only known where the next one is sure to have a symbol:
// .dynsym alone lacks the functions that are not exported.
enum class Unsized { kKeep, kDrop };

constexpr const char* kDebugInfo = ".debug_info";

bool HasDebugInfo(const SectionTable& sections) {
  const Section* const section = sections.Find(kDebugInfo);
  return section != nullptr && section->header.sh_type != SHT_NOBITS;
}

DeclaredFunction::Binding BindingOf(const Elf64_Sym& symbol) {
  switch (ELF64_ST_BIND(symbol.st_info)) {
    case STB_LOCAL:
      return DeclaredFunction::Binding::kLocal;
    case STB_WEAK:
      return DeclaredFunction::Binding::kWeak;
    default:
      return DeclaredFunction::Binding::kGlobal;
  }
}

// The code section that `symbol` says to lie in, and does lie in; or null.
const Section* CodeSectionOf(const Elf64_Sym& symbol, const SectionTable& sections) {
  const Section* const s = sections.At(symbol.st_shndx);
  if (s == nullptr || (s->header.sh_flags & SHF_EXECINSTR) == 0) return nullptr;
  const bool inside = symbol.st_value >= s->header.sh_addr &&
                      symbol.st_value - s->header.sh_addr < s->header.sh_size;
  return inside ? s : nullptr;
}

// Where the code begins.
ElfAddress BaseOf(const ElfFile& elf) {
  ElfAddress base(0);
  bool any = false;
  for (const Segment& segment : elf.segments()) {
    if (!segment.executable || (any && base <= segment.address)) continue;
    base = segment.address;
    any = true;
  }
  return base;
}

class FunctionCollector {
 public:
  // `elf` is the file that gets executed: its segments say what is code.
  FunctionCollector(const ElfFile& elf, const SymbolTableOptions& options)
      : elf_(elf), builder_(BaseOf(elf), options) {}

  // Adds the functions of `range` in `file`, which is `elf` or its debug data.
  Result<void> AddAll(const ElfFile& file, const SectionTable& sections, const SymbolRange& range,
                      Unsized unsized) {
    builder_.Reserve(range.count);
    Result<void> visited = ForEachSymbol(file, range, [&](const Elf64_Sym& symbol) {
      const std::optional<DeclaredFunction> function = FunctionOf(symbol, sections);
      if (!function || (function->size == 0 && unsized == Unsized::kDrop)) return;
      builder_.Add(*function, symbol.st_name);
    });
    if (!visited) {
      builder_.ForgetUnnamed();
      return visited;
    }
    ReadNames(file, range);
    return {};
  }

  // Adds what the runtime of a Go program knows of its functions: their source, and, if
  // `and_names`, they themselves. Not if its table cannot be read, as that of newer versions of Go,
  // or of one that was disguised.
  void AddGo(const SectionTable& sections, bool and_names) {
    const Result<GoFunctionTable> table = FindGoFunctions(elf_, sections);
    if (!table) return;
    if (and_names) AddFunctions(*table);
    if (!builder_.empty()) AddGoSources(elf_, sections, *table, builder_);
  }

  // Adds the stubs through which `elf` calls functions of other files, as far as these are known.
  void AddStubs(const SectionTable& sections) {
    const Result<PltStubs> found = FindPltStubs(elf_, sections);
    if (!found) return;
    std::vector<SymbolTableBuilder::Stub> stubs;
    stubs.reserve(found->stubs.size());
    for (const PltStub& stub : found->stubs) {
      stubs.push_back({.range = {stub.begin, stub.end}, .function = stub.name});
    }
    SymbolNames names(elf_, found->symbols);
    builder_.AddStubs(stubs, [&](uint32_t offset) { return names.At(offset); });
  }

  // Adds what debug information in `file` tells of their source, or counts it. Not if it is known.
  Result<void> AddDebugInfo(const DwarfFile& file, bool is_read) {
    if (!HasDebugInfo(*file.sections) || builder_.empty() || builder_.has_sources()) return {};
    if (is_read) return AddDwarfSources(elf_, file, builder_);
    builder_.NoteUnread(file.sections->Find(kDebugInfo)->header.sh_size);
    return {};
  }

  bool HasLongUnsized() { return builder_.HasLongUnsized(); }
  void AddCode(std::span<const SymbolTableBuilder::KnownCode> code) { builder_.AddCode(code); }

  bool empty() const { return builder_.empty(); }
  Result<SymbolTable> Build() && { return std::move(builder_).Build(); }

 private:
  void AddFunctions(const GoFunctionTable& table) {
    builder_.Reserve(table.count);
    const Result<void> visited = ForEachGoFunction(elf_, table, [&](const GoFunction& function) {
      const Segment* const segment = ExecutableSegmentAt(elf_.segments(), function.begin);
      if (segment == nullptr) return;
      builder_.Add({.start = function.begin,
                    .size = function.end.value() - function.begin.value(),
                    .limit = ElfAddress(segment->address.value() + segment->memory_size)},
                   function.name);
    });
    if (visited) {
      ReadNames(elf_, table.names);
    } else {
      builder_.ForgetUnnamed();
    }
  }

  void ReadNames(const ElfFile& file, const SymbolRange& range) {
    SymbolNames names(file, range);
    builder_.ReadNames([&](uint32_t offset) { return names.At(offset); });
  }

  std::optional<DeclaredFunction> FunctionOf(const Elf64_Sym& symbol,
                                             const SectionTable& sections) const {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    const bool typed = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (!typed && type != STT_NOTYPE) return std::nullopt;
    const bool defined = symbol.st_shndx != SHN_UNDEF &&
                         (symbol.st_shndx < SHN_LORESERVE || symbol.st_shndx == SHN_XINDEX);
    if (!defined) return std::nullopt;
    const Segment* const segment =
        ExecutableSegmentAt(elf_.segments(), ElfAddress(symbol.st_value));
    if (segment == nullptr) return std::nullopt;
    const Section* const section = CodeSectionOf(symbol, sections);
    if (section == nullptr && (!typed || symbol.st_size == 0)) return std::nullopt;

    const uint64_t segment_end = segment->address.value() + segment->memory_size;
    // Does not overflow: the symbol lies inside, so what follows it in the section is less than
    // the distance to the segment's end or cut to it.
    const uint64_t rest =
        section == nullptr ? segment_end - symbol.st_value
                           : section->header.sh_size - (symbol.st_value - section->header.sh_addr);
    const uint64_t room = std::min(rest, segment_end - symbol.st_value);
    return DeclaredFunction{.start = ElfAddress(symbol.st_value),
                            .size = symbol.st_size,
                            .limit = ElfAddress(symbol.st_value + room),
                            .binding = BindingOf(symbol),
                            .typed = typed};
  }

  const ElfFile& elf_;
  SymbolTableBuilder builder_;
};

// One attempt at reading symbols. That there are none is no failure.
class Attempts {
 public:
  void Note(Result<void> attempt) {
    if (attempt || attempt.error().code() == ErrorCode::kNotFound || failure_) return;
    failure_ = std::move(attempt).error();
  }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  std::optional<Error> failure_;  // the first
};

Result<void> AddStatic(const ElfFile& elf, const SectionTable& sections,
                       FunctionCollector& functions) {
  ASSIGN_OR_RETURN(const SymbolRange range, FindSymbols(sections, SHT_SYMTAB));
  return functions.AddAll(elf, sections, range, Unsized::kKeep);
}

Result<void> AddDebugData(const ElfFile& elf, const SectionTable& sections,
                          FunctionCollector& functions) {
  ASSIGN_OR_RETURN(const ElfFile debug_data, ReadDebugData(elf, sections));
  ASSIGN_OR_RETURN(const SectionTable debug_sections, SectionTable::Read(debug_data));
  return AddStatic(debug_data, debug_sections, functions);
}

Result<void> AddDynamic(const ElfFile& elf, const SectionTable& sections, Unsized unsized,
                        FunctionCollector& functions) {
  Result<SymbolRange> range = FindSymbols(sections, SHT_DYNSYM);
  if (!range) range = FindDynamicSymbols(elf);
  if (!range) return std::move(range).error();
  return functions.AddAll(elf, sections, *range, unsized);
}

using Code = SymbolTableBuilder::Code;
using KnownCode = SymbolTableBuilder::KnownCode;

std::optional<Code> CodeOf(const Section& section) {
  if ((section.header.sh_flags & SHF_EXECINSTR) == 0) return std::nullopt;
  if (IsPltSection(section)) return Code::kPlt;
  if (section.name == ".init") return Code::kInit;
  if (section.name == ".fini") return Code::kFini;
  return std::nullopt;
}

// Sorted and disjoint, as far as sections are: what overlaps is left out.
std::vector<KnownCode> CodeOfSections(const ElfFile& elf, const SectionTable& sections) {
  std::vector<KnownCode> all;
  for (const Section& section : sections.all()) {
    const std::optional<Code> code = CodeOf(section);
    const ElfAddress begin(section.header.sh_addr);
    const Segment* const segment = ExecutableSegmentAt(elf.segments(), begin);
    if (!code || segment == nullptr) continue;
    const uint64_t room = segment->memory_size - (begin.value() - segment->address.value());
    const ElfAddress end(begin.value() + std::min(section.header.sh_size, room));
    all.push_back({.range = {begin, end}, .code = *code});
  }
  const auto begin_of = [](const KnownCode& code) { return code.range.begin; };
  std::ranges::stable_sort(all, {}, begin_of);
  ElfAddress end(0);
  std::erase_if(all, [&](const KnownCode& code) {
    const bool overlaps = code.range.begin < end;
    if (!overlaps) end = code.range.end;
    return overlaps;
  });
  return all;
}

// Where the program begins; of a library that is nothing.
std::optional<ElfAddress> EntryOf(const ElfFile& elf) {
  const bool is_program = elf.header().e_type == ET_EXEC ||
                          std::ranges::find(elf.program_headers(), PT_INTERP,
                                            &Elf64_Phdr::p_type) != elf.program_headers().end();
  if (!is_program || elf.header().e_entry == 0) return std::nullopt;
  return ElfAddress(elf.header().e_entry);
}

// What is known without symbols: code by its section, and else functions by their bounds.
std::vector<KnownCode> KnownCodeOf(const ElfFile& elf, const SectionTable& sections,
                                   const UnnamedFunctions& unnamed) {
  const std::optional<ElfAddress> entry = EntryOf(elf);
  const std::vector<KnownCode> of_sections = CodeOfSections(elf, sections);
  std::vector<KnownCode> all;
  all.reserve(of_sections.size() + unnamed.size());
  auto section = of_sections.begin();
  ElfAddress end(0);  // of the sections before
  for (CodeRange function : unnamed) {
    for (; section != of_sections.end() && section->range.begin <= function.begin; ++section) {
      all.push_back(*section);
      end = section->range.end;
    }
    if (function.begin < end) continue;
    if (section != of_sections.end()) function.end = std::min(function.end, section->range.begin);
    const bool is_start = entry && function.begin == *entry;
    all.push_back({.range = function, .code = is_start ? Code::kStart : Code::kUnnamed});
  }
  all.insert(all.end(), section, of_sections.end());
  return all;
}

}  // namespace

Result<SymbolTable> ReadSymbolTable(const ElfFile& elf, const SymbolTableOptions& options,
                                    const std::function<UnnamedFunctions()>& unnamed,
                                    const SeparateFiles& separate) {
  Attempts attempts;
  const auto sections_of = [&attempts](const ElfFile& file) {
    Result<SectionTable> read = SectionTable::Read(file);
    if (read) return *std::move(read);
    attempts.Note(std::move(read).error());
    return SectionTable();
  };
  const SectionTable sections = sections_of(elf);
  const SectionTable debug_sections =
      separate.debug == nullptr ? SectionTable() : sections_of(*separate.debug);
  FunctionCollector functions(elf, options);
  attempts.Note(AddStatic(elf, sections, functions));
  const bool has_own = !functions.empty();
  if (!has_own && separate.debug != nullptr) {
    attempts.Note(AddStatic(*separate.debug, debug_sections, functions));
  }
  const bool is_stripped = functions.empty();
  if (is_stripped) {
    attempts.Note(AddDebugData(elf, sections, functions));
    const Unsized unsized = functions.empty() ? Unsized::kDrop : Unsized::kKeep;
    attempts.Note(AddDynamic(elf, sections, unsized, functions));
  }
  functions.AddStubs(sections);
  functions.AddGo(sections, is_stripped);
  if (functions.empty() && attempts.failure()) return *attempts.failure();
  const bool is_in_own = HasDebugInfo(sections) || separate.debug == nullptr;
  RETURN_IF_ERROR(functions.AddDebugInfo({.elf = is_in_own ? &elf : separate.debug,
                                          .sections = is_in_own ? &sections : &debug_sections,
                                          .alternate = separate.alternate},
                                         options.with_debug_info));
  if (is_stripped || functions.HasLongUnsized()) {
    functions.AddCode(KnownCodeOf(elf, sections, unnamed ? unnamed() : UnnamedFunctions()));
  }
  return std::move(functions).Build();
}

}  // namespace pyrometer
