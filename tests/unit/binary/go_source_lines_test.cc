// SPDX-License-Identifier: Apache-2.0
#include "binary/go_source_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/made_go_program.h"

namespace pyrometer {
namespace {

using Format = GoFunctionTable::Format;
using Text = MadeGoProgram::Text;

constexpr Format kSourceFormats[] = {Format::kGo2, Format::kGo16, Format::kGo18, Format::kGo20};

// A value for each of so many bytes.
DwarfBytes Changes(const std::vector<std::pair<int64_t, uint64_t>>& values) {
  DwarfBytes bytes;
  int64_t last = -1;
  for (const auto& [value, size] : values) {
    const int64_t change = value - last;
    bytes.Uleb(static_cast<uint64_t>(change << 1) ^ static_cast<uint64_t>(change >> 63));
    bytes.Uleb(size);
    last = value;
  }
  return bytes.U8(0);
}

// An inlined call as the formats have it.
DwarfBytes Call(Format format, uint32_t name, uint32_t parent_pc, uint32_t start_line) {
  DwarfBytes call;
  if (format == Format::kGo20) return call.U32(0).U32(name).U32(parent_pc).U32(start_line);
  return call.U32(0).U32(0).U32(0).U32(name).U32(parent_pc);
}

// main.main has main.outer inlined on line 10, and that has main.inner on line 12. `names` are
// those of the inlined functions.
MadeGoProgram Inlining(Format format, const std::vector<uint32_t>& names) {
  MadeGoProgram program{.names = {"main.main", "main.outer", "main.inner"}, .format = format};
  program.files = {"", "main.go", "other.go"};
  program.text = Text::kInModule;
  program.section = ".data.rel.ro";
  program.before = DwarfBytes().U64(0);
  program.before.Append(Call(format, names[0], 5, 50)).Append(Call(format, names[1], 15, 30));
  while (program.before.size() % 8 != 0) program.before.U8(0);
  program.sources = {
      {.files = Changes({{1, 20}, {2, 20}, {1, 216}}),
       .lines = Changes({{10, 10}, {12, 10}, {33, 20}, {14, 216}}),
       .inlined = Changes({{-1, 10}, {0, 10}, {1, 10}, {-1, 226}}),
       .start_line = 7,
       .calls = 8},
      {.files = Changes({{1, 256}}), .lines = Changes({{51, 256}}), .start_line = 50},
      {},
  };
  return program;
}

std::vector<GoFunction> FunctionsOf(const ElfFile& elf, const GoFunctionTable& table) {
  std::vector<GoFunction> all;
  EXPECT_TRUE(ForEachGoFunction(elf, table, [&](const GoFunction& f) { all.push_back(f); }));
  return all;
}

MadeGoProgram Inlining(Format format) {
  const ElfFile elf = Inlining(format, {0, 0}).Open();
  const GoFunctionTable table = *FindGoFunctions(elf, *SectionTable::Read(elf));
  const std::vector<GoFunction> functions = FunctionsOf(elf, table);
  return Inlining(format, {functions.at(1).name, functions.at(2).name});
}

// What is told of the function with that number.
std::string SourceOf(const MadeGoProgram& program, size_t number) {
  const ElfFile elf = program.Open();
  const SectionTable sections = *SectionTable::Read(elf);
  const GoFunctionTable table = *FindGoFunctions(elf, sections);
  Result<GoSourceLines> lines = GoSourceLines::Open(elf, sections, table);
  if (!lines) return lines.error().message();
  const Result<GoSource> source = lines->Of(FunctionsOf(elf, table).at(number));
  if (!source) return source.error().message();
  const auto text_of = [&](const SymbolRange& range, uint32_t at) {
    return std::string(SymbolNames(elf, range).At(at).value_or("?"));
  };
  const auto place = [&](const GoSourcePlace& p) {
    return fmt::format("{}:{}", p.file ? text_of(table.files, *p.file) : "", p.line);
  };
  std::string text = fmt::format("from {}", source->start_line);
  for (const GoInlinedCall& call : source->inlined) {
    text += fmt::format(" | {} from {} at {}", text_of(table.names, call.name), call.start_line,
                        place(call.call));
    if (call.within) text += fmt::format(" in {}", *call.within);
  }
  for (const GoSourceRow& row : source->rows) {
    text += fmt::format(" [{},{}) {}", row.begin, row.end, place(row.place));
    if (row.inlined) text += fmt::format(" in {}", *row.inlined);
  }
  return text;
}

TEST(GoSourceLines, AreReadInEachFormat) {
  for (const Format format : kSourceFormats) {
    const bool is_new = format == Format::kGo20;
    EXPECT_EQ(SourceOf(Inlining(format), 0),
              fmt::format("from {} | main.outer from {} at main.go:10 | main.inner from {} at "
                          "main.go:12 in 0 [0,10) main.go:10 [10,20) main.go:12 in 0 "
                          "[20,30) other.go:33 in 1 [30,40) other.go:33 [40,256) main.go:14",
                          is_new ? 7 : 0, is_new ? 50 : 0, is_new ? 30 : 0))
        << static_cast<int>(format);
    EXPECT_EQ(SourceOf(Inlining(format), 1),
              fmt::format("from {} [0,256) main.go:51", is_new ? 50 : 0));
    EXPECT_EQ(SourceOf(Inlining(format), 2), "from 0") << "nothing is told of it";
  }
}

TEST(GoSourceLines, HaveInlinedCallsWhereTheModuleIsRelocated) {
  MadeGoProgram program = Inlining(Format::kGo20);
  const std::string written = SourceOf(program, 0);
  program.text = Text::kInRelocatedModule;
  EXPECT_EQ(SourceOf(program, 0), written);
}

TEST(GoSourceLines, HaveNoInlinedCallsIfNobodySaysWhereTheyAre) {
  MadeGoProgram program = Inlining(Format::kGo20);
  program.text = Text::kWritten;
  EXPECT_EQ(SourceOf(program, 0),
            "from 7 [0,10) main.go:10 [10,20) main.go:12 [20,40) other.go:33 [40,256) main.go:14");
}

TEST(GoSourceLines, HaveNoFileWhereTheTableHasNone) {
  MadeGoProgram program = Inlining(Format::kGo20);
  program.sources[1].files = Changes({{1'000'000, 100}, {-1, 100}, {1, 56}});
  EXPECT_EQ(SourceOf(program, 1), "from 50 [0,200) :51 [200,256) main.go:51");
}

TEST(GoSourceLines, EndWithTheFunctionWhateverTheirValues) {
  MadeGoProgram program = Inlining(Format::kGo20);
  program.sources[1].lines = Changes({{51, 1'000'000}});
  program.sources[1].files = Changes({{1, 1'000'000}});
  EXPECT_EQ(SourceOf(program, 1), "from 50 [0,256) main.go:51");
}

TEST(GoSourceLines, OfACallThatIsInlinedIntoItselfAreTold) {
  MadeGoProgram program = Inlining(Format::kGo20);
  program.sources[0].inlined = Changes({{-1, 10}, {0, 5}, {1, 15}, {-1, 226}});
  EXPECT_NE(SourceOf(program, 0).find("main.inner from 30 at main.go:12 ["), std::string::npos)
      << SourceOf(program, 0);
}

TEST(GoSourceLines, WhateverTheTableHoldsDoNoHarm) {
  for (const Format format : kSourceFormats) {
    const MadeGoProgram program = Inlining(format);
    const std::vector<std::byte> image = program.Image();
    for (size_t at = 0; at < image.size(); at += 3) {
      std::vector<std::byte> changed = image;
      changed[at] = static_cast<std::byte>(0xff);
      const Result<ElfFile> elf = ElfFile::FromBytes(std::move(changed));
      if (!elf) continue;
      const Result<SectionTable> sections = SectionTable::Read(*elf);
      if (!sections) continue;
      const Result<GoFunctionTable> table = FindGoFunctions(*elf, *sections);
      if (!table) continue;
      Result<GoSourceLines> lines = GoSourceLines::Open(*elf, *sections, *table);
      if (!lines) continue;
      const Result<void> visited = ForEachGoFunction(*elf, *table, [&](const GoFunction& f) {
        const Result<GoSource> source = lines->Of(f);
        if (!source) return;
        for (const GoSourceRow& row : source->rows) {
          EXPECT_LT(row.begin, row.end);
          EXPECT_LT(row.inlined.value_or(0), std::max<size_t>(source->inlined.size(), 1));
        }
      });
      static_cast<void>(visited);
    }
  }
}

}  // namespace
}  // namespace pyrometer
