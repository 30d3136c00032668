// SPDX-License-Identifier: Apache-2.0
#include "symbolize/elf_symbols.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/debug_data.h"
#include "binary/sections.h"
#include "binary/segments.h"
#include "binary/symbols.h"
#include "symbolize/symbol_table_builder.h"

namespace pyrometer {
namespace {

// Where a function without a size ends is only known where the next one is sure to have a symbol:
// .dynsym alone lacks the functions that are not exported.
enum class Unsized { kKeep, kDrop };

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
    SymbolNames names(file, range);
    builder_.ReadNames([&](uint32_t offset) { return names.At(offset); });
    return {};
  }

  bool empty() const { return builder_.empty(); }
  Result<SymbolTable> Build() && { return std::move(builder_).Build(); }

 private:
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

}  // namespace

Result<SymbolTable> ReadSymbolTable(const ElfFile& elf, const SymbolTableOptions& options) {
  Attempts attempts;
  SectionTable sections;
  if (Result<SectionTable> read = SectionTable::Read(elf)) {
    sections = *std::move(read);
  } else {
    attempts.Note(std::move(read).error());
  }
  FunctionCollector functions(elf, options);
  attempts.Note(AddStatic(elf, sections, functions));
  if (functions.empty()) {
    attempts.Note(AddDebugData(elf, sections, functions));
    const Unsized unsized = functions.empty() ? Unsized::kDrop : Unsized::kKeep;
    attempts.Note(AddDynamic(elf, sections, unsized, functions));
  }
  if (functions.empty() && attempts.failure()) return *attempts.failure();
  return std::move(functions).Build();
}

}  // namespace pyrometer
