// SPDX-License-Identifier: Apache-2.0
#include "symbolize/elf_symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "binary/plt_stubs.h"
#include "binary/sections.h"
#include "tests/shared/made_go_program.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

std::string NameAt(const SymbolTable& table, uint64_t address) {
  const std::optional<Symbol> symbol = table.Find(ElfAddress(address));
  return symbol ? std::string(symbol->name) : "-";
}

SymbolTable TableOf(const ElfFile& elf) {
  Result<SymbolTable> table = ReadSymbolTable(elf);
  EXPECT_TRUE(table.has_value());
  return *std::move(table);
}

bool IsCode(const NmSymbol& s) {
  return s.type == 't' || s.type == 'T' || s.type == 'W' || s.type == 'i';
}

TEST(ElfSymbols, AgreeWithNmInExecutablesAndLibrariesOfAllKinds) {
  for (const char* fixture : {"pie", "non_pie", "static_pie", "two_texts", "shared.so"}) {
    const SymbolTable table = TableOf(OpenFixture(fixture));
    const std::vector<NmSymbol> truth = NmSymbols(fixture);
    int checked = 0;
    for (const NmSymbol& s : truth) {
      if (!IsCode(s) || s.size == 0) continue;
      for (const uint64_t address : {s.address, s.address + s.size - 1}) {
        std::set<std::string> right;
        for (const NmSymbol& other : truth) {
          if (address >= other.address && address < other.address + other.size) {
            right.insert(other.name);
          }
        }
        EXPECT_TRUE(right.contains(NameAt(table, address)))
            << fixture << ": " << s.name << " is called " << NameAt(table, address);
        ++checked;
      }
    }
    EXPECT_GE(checked, 8) << fixture;
  }
}

TEST(ElfSymbols, NameCodeInEveryExecutableSegment) {
  const SymbolTable table = TableOf(OpenFixture("two_texts"));
  EXPECT_EQ(NameAt(table, NmSymbolOf("two_texts", "fixture_far").address), "fixture_far");
  EXPECT_EQ(NameAt(table, NmSymbolOf("two_texts", "fixture_local").address), "fixture_local");
}

TEST(ElfSymbols, PreferGlobalNamesToWeakAliases) {
  const SymbolTable table = TableOf(OpenFixture("pie"));
  EXPECT_EQ(NameAt(table, NmSymbolOf("pie", "fixture_alias").address), "fixture_alpha");
}

TEST(ElfSymbols, NameFunctionsWithoutSizeUpToTheNext) {
  const SymbolTable table = TableOf(OpenFixture("pie"));
  const uint64_t unsized = NmSymbolOf("pie", "fixture_unsized").address;
  const uint64_t label = NmSymbolOf("pie", "fixture_label").address;
  const NmSymbol next = NmSymbolOf("pie", "fixture_before_gap");
  EXPECT_EQ(NameAt(table, unsized), "fixture_unsized");
  EXPECT_EQ(NameAt(table, label - 1), "fixture_unsized");
  EXPECT_EQ(NameAt(table, label), "fixture_label");
  EXPECT_EQ(NameAt(table, next.address), "fixture_before_gap");
  EXPECT_EQ(NameAt(table, next.address + next.size), "-") << "the gap belongs to nobody";
}

TEST(ElfSymbols, AreNoneWhereThereIsData) {
  const SymbolTable table = TableOf(OpenFixture("pie"));
  EXPECT_EQ(NameAt(table, NmSymbolOf("pie", "fixture_data").address), "-");
}

TEST(ElfSymbols, OfAStrippedFileAreTheExportedOnes) {
  const SymbolTable table = TableOf(OpenFixture("stripped"));
  EXPECT_EQ(NameAt(table, NmSymbolOf("pie", "fixture_alpha").address), "fixture_alpha");
  EXPECT_EQ(NameAt(table, NmSymbolOf("pie", "fixture_local").address), "-");
  // What follows an exported label may be a function that is not: it inherits nothing.
  EXPECT_EQ(NameAt(table, NmSymbolOf("pie", "fixture_label").address), "-");
}

TEST(ElfSymbols, OfAStrippedFileKnowFunctionsWithoutAName) {
  const ElfFile elf = OpenFixture("stripped");
  const NmSymbol local = NmSymbolOf("pie", "fixture_local");
  const NmSymbol alpha = NmSymbolOf("pie", "fixture_alpha");
  const ElfAddress entry(elf.header().e_entry);
  const SymbolTable table = *ReadSymbolTable(elf, {}, [&] {
    UnnamedFunctions functions;
    for (const NmSymbol& s : {local, alpha}) {
      functions.push_back({ElfAddress(s.address), ElfAddress(s.address + s.size)});
    }
    functions.push_back({entry, ElfAddress(entry.value() + 0x10)});
    std::ranges::sort(functions, {}, &CodeRange::begin);
    return functions;
  });
  EXPECT_EQ(NameAt(table, alpha.address), "fixture_alpha");
  EXPECT_EQ(NameAt(table, entry.value() + 1), "_start");
  const std::optional<Symbol> unnamed = table.Find(ElfAddress(local.address + local.size - 1));
  ASSERT_TRUE(unnamed);
  EXPECT_EQ(unnamed->name, "");
  EXPECT_EQ(unnamed->start, ElfAddress(local.address));
  const SectionTable sections = *SectionTable::Read(elf);
  int known = 0;
  for (const auto& [section, name] :
       std::vector<std::pair<const char*, const char*>>{{".init", "_init"}, {".fini", "_fini"}}) {
    const Section* const s = sections.Find(section);
    if (s == nullptr) continue;
    EXPECT_EQ(NameAt(table, s->header.sh_addr), name);
    EXPECT_EQ(NameAt(table, s->header.sh_addr + s->header.sh_size - 1), name);
    ++known;
  }
  EXPECT_GE(known, 2);
}

uint64_t BeginOf(const ElfFile& elf, const char* section) {
  return SectionTable::Read(elf)->Find(section)->header.sh_addr;
}

// What the addresses in the sections of stubs are called.
std::set<std::string> StubNames(const ElfFile& elf, const SymbolTable& table) {
  std::set<std::string> names;
  const SectionTable sections = *SectionTable::Read(elf);
  for (const Section& section : sections.all()) {
    if (!IsPltSection(section)) continue;
    for (uint64_t i = 0; i < section.header.sh_size; ++i) {
      names.insert(NameAt(table, section.header.sh_addr + i));
    }
  }
  return names;
}

TEST(ElfSymbols, NameStubsAfterTheFunctionsThatTheyCall) {
  using testing::UnorderedElementsAre;
  const auto are_all = [](const char* rest) {
    return UnorderedElementsAre("callee_one@plt", "callee_two@plt", "callee_also_stored@plt",
                                "_ZN5outer6calleeEi@plt", rest);
  };
  for (const char* fixture : {"calls_lazy.so", "calls_now.so"}) {
    const ElfFile elf = OpenFixture(fixture);
    EXPECT_THAT(StubNames(elf, TableOf(elf)), are_all("-")) << fixture;
  }
  const ElfFile stripped = OpenFixture("calls_stripped.so");
  EXPECT_THAT(StubNames(stripped, TableOf(stripped)), are_all("[plt]"));
  EXPECT_EQ(NameAt(TableOf(stripped), BeginOf(stripped, ".plt")), "[plt]") << "the resolver";
#ifdef __x86_64__
  const ElfFile ibt = OpenFixture("calls_ibt.so");
  ASSERT_NE(SectionTable::Read(ibt)->Find(".plt.sec"), nullptr);
  EXPECT_THAT(StubNames(ibt, TableOf(ibt)), are_all("-"));
#endif
}

TEST(ElfSymbols, NameStubsByTheFileThatHasThemAndNotByItsDebugFile) {
  const ElfFile stripped = OpenFixture("calls_stripped.so");
  const ElfFile debug_file = OpenFixture("calls_lazy.so");
  const SymbolTable table = *ReadSymbolTable(stripped, {}, {}, {.debug = &debug_file});
  EXPECT_EQ(NameAt(table, NmSymbolOf("calls_lazy.so", "chosen_one").address), "chosen_one");
  EXPECT_TRUE(StubNames(stripped, table).contains("callee_one@plt"));
  std::vector<std::byte> image = FixtureBytes("calls_stripped.so");
  RemoveSectionHeaders(image);
  const ElfFile without = *ElfFile::FromBytes(image);
  const SymbolTable other = *ReadSymbolTable(without, {}, {}, {.debug = &debug_file});
  EXPECT_EQ(StubNames(debug_file, other), std::set<std::string>{"-"});
}

TEST(ElfSymbols, CoverStubs) {
  std::vector<std::byte> image = FixtureBytes("calls_lazy.so");
  const ElfFile elf = *ElfFile::FromBytes(image);
  const SectionTable sections = *SectionTable::Read(elf);
  const Section& plt = *sections.Find(".plt");
  const Elf64_Shdr symbols = sections.FindType(SHT_SYMTAB)->header;
  const uint64_t calls = NmSymbolOf("calls_lazy.so", "calls").address;
  for (uint64_t i = 1; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    const size_t at = symbols.sh_offset + i * sizeof(Elf64_Sym);
    auto symbol = Peek<Elf64_Sym>(image, at);
    if (symbol.st_value != calls) continue;
    symbol.st_value = plt.header.sh_addr;
    symbol.st_size = plt.header.sh_size;
    Poke(image, at, symbol);
  }
  const SymbolTable table = TableOf(*ElfFile::FromBytes(image));
  for (uint64_t i = 0; i < plt.header.sh_size; ++i) {
    EXPECT_EQ(NameAt(table, plt.header.sh_addr + i), "calls") << i;
  }
}

TEST(ElfSymbols, AskForNoBoundsWhereAllFunctionsHaveSymbols) {
  bool asked = false;
  const auto unnamed = [&] {
    asked = true;
    return UnnamedFunctions();
  };
  EXPECT_TRUE(ReadSymbolTable(OpenFixture("pie"), {}, unnamed));
  EXPECT_FALSE(asked);
}

// As in a file that was stripped of its local symbols.
TEST(ElfSymbols, WithoutASizeEndWhereFunctionsWithoutASymbolBegin) {
  std::vector<std::byte> image = FixtureBytes("pie");
  const ElfFile elf = *ElfFile::FromBytes(image);
  const Elf64_Shdr symbols = SectionTable::Read(elf)->FindType(SHT_SYMTAB)->header;
  const uint64_t unsized = NmSymbolOf("pie", "fixture_unsized").address;
  const NmSymbol next = NmSymbolOf("pie", "fixture_before_gap");
  for (uint64_t i = 1; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    const size_t at = symbols.sh_offset + i * sizeof(Elf64_Sym);
    auto symbol = Peek<Elf64_Sym>(image, at);
    if (symbol.st_value == unsized) continue;
    symbol.st_info = STT_OBJECT;
    Poke(image, at, symbol);
  }
  const ElfFile without = *ElfFile::FromBytes(image);
  EXPECT_EQ(NameAt(TableOf(without), next.address), "fixture_unsized") << "nobody knows better";
  const auto bounds = [&] {
    return UnnamedFunctions{{ElfAddress(next.address), ElfAddress(next.address + next.size)}};
  };
  const SymbolTable table = *ReadSymbolTable(without, {}, bounds);
  EXPECT_EQ(NameAt(table, next.address - 1), "fixture_unsized");
  EXPECT_EQ(table.Find(ElfAddress(next.address))->start, ElfAddress(next.address));
  EXPECT_EQ(NameAt(table, next.address), "");
  EXPECT_EQ(NameAt(table, next.address + next.size), "-");
}

TEST(ElfSymbols, OfALibraryHaveNoStart) {
  std::vector<std::byte> image = FixtureBytes("shared.so");
  RemoveSectionHeaders(image);
  const NmSymbol local = NmSymbolOf("shared.so", "fixture_local");
  auto header = Peek<Elf64_Ehdr>(image, 0);
  header.e_entry = local.address;
  Poke(image, 0, header);
  const SymbolTable table = *ReadSymbolTable(*ElfFile::FromBytes(image), {}, [&] {
    return UnnamedFunctions{{ElfAddress(local.address), ElfAddress(local.address + local.size)}};
  });
  EXPECT_EQ(NameAt(table, local.address), "");
}

TEST(ElfSymbols, OfMiniDebugInfoCompleteTheExportedOnes) {
  const SymbolTable table = TableOf(OpenFixture("mini_debug"));
  for (const char* name : {"fixture_alpha", "fixture_local", "fixture_far", "fixture_unsized"}) {
    EXPECT_EQ(NameAt(table, NmSymbolOf("pie", name).address), name);
  }
}

TEST(ElfSymbols, AreReadWithoutSections) {
  std::vector<std::byte> image = FixtureBytes("shared.so");
  RemoveSectionHeaders(image);
  const SymbolTable table = TableOf(*ElfFile::FromBytes(image));
  EXPECT_EQ(NameAt(table, NmSymbolOf("shared.so", "fixture_far").address), "fixture_far");
  EXPECT_EQ(NameAt(table, NmSymbolOf("shared.so", "fixture_local").address), "-");
}

TEST(ElfSymbols, SurviveABadSectionTable) {
  std::vector<std::byte> image = FixtureBytes("shared.so");
  auto header = Peek<Elf64_Ehdr>(image, 0);
  header.e_shoff = image.size() - 8;
  Poke(image, 0, header);
  const SymbolTable table = TableOf(*ElfFile::FromBytes(image));
  EXPECT_EQ(NameAt(table, NmSymbolOf("shared.so", "fixture_far").address), "fixture_far");
}

TEST(ElfSymbols, OfAFileWithoutAnyAreAnEmptyTable) {
  std::vector<std::byte> image = FixtureBytes("static_pie");
  RemoveSectionHeaders(image);
  const auto header = Peek<Elf64_Ehdr>(image, 0);
  for (int i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = Peek<Elf64_Phdr>(image, at);
    if (segment.p_type == PT_DYNAMIC) segment.p_type = PT_NULL;
    Poke(image, at, segment);
  }
  EXPECT_TRUE(TableOf(*ElfFile::FromBytes(image)).empty());
}

TEST(ElfSymbols, ThatCannotBeReadAreAnError) {
  std::vector<std::byte> image = FixtureBytes("non_pie");
  const auto header = Peek<Elf64_Ehdr>(image, 0);
  for (int i = 0; i < header.e_shnum; ++i) {
    const size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
    auto section = Peek<Elf64_Shdr>(image, at);
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM)
      section.sh_offset = 1UL << 50;
    Poke(image, at, section);
  }
  const Result<SymbolTable> table = ReadSymbolTable(*ElfFile::FromBytes(image));
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().code(), ErrorCode::kMalformed);
}

TEST(ReadSymbolTable, HasTheFunctionsThatTheRuntimeOfGoKnows) {
  MadeGoProgram program{.names = {"_rt0_amd64_linux", "main.(*Cache).cold", "runtime.goexit"}};
  for (const auto format : {GoFunctionTable::Format::kGo2, GoFunctionTable::Format::kGo20}) {
    program.format = format;
    const Result<SymbolTable> table = ReadSymbolTable(program.Open());
    ASSERT_TRUE(table) << table.error().message();
    EXPECT_EQ(table->size(), 3U);
    const uint64_t second = MadeGoProgram::kText + MadeGoProgram::kSize;
    for (const uint64_t address : {second, second + MadeGoProgram::kSize - 1}) {
      const std::optional<Symbol> symbol = table->Find(ElfAddress(address));
      ASSERT_TRUE(symbol);
      EXPECT_EQ(symbol->name, "main.(*Cache).cold");
      EXPECT_EQ(symbol->start, ElfAddress(second));
    }
    EXPECT_FALSE(table->Find(ElfAddress(MadeGoProgram::kText + program.TextSize())));
  }
}

TEST(ReadSymbolTable, HasWhatElseIsKnownIfATableOfGoCannotBeRead) {
  MadeGoProgram program{.names = {"main.main"}};
  program.text = MadeGoProgram::Text::kNowhere;
  const CodeRange known{ElfAddress(MadeGoProgram::kText), ElfAddress(MadeGoProgram::kText + 16)};
  const auto unnamed = [&] { return UnnamedFunctions{known}; };
  const Result<SymbolTable> table = ReadSymbolTable(program.Open(), {}, unnamed);
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_EQ(table->Find(known.begin)->name, "_start");
}

}  // namespace
}  // namespace pyrometer
