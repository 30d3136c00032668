// SPDX-License-Identifier: Apache-2.0
#include "binary/go_functions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "binary/byte_source.h"
#include "binary/symbols.h"
#include "tests/shared/made_go_program.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using Format = GoFunctionTable::Format;
using Text = MadeGoProgram::Text;

constexpr Format kFormats[] = {Format::kGo2, Format::kGo16, Format::kGo18, Format::kGo20};

struct Named {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
  bool operator==(const Named&) const = default;
};

Result<std::vector<Named>> Read(const ElfFile& elf) {
  ASSIGN_OR_RETURN(const SectionTable sections, SectionTable::Read(elf));
  ASSIGN_OR_RETURN(const GoFunctionTable table, FindGoFunctions(elf, sections));
  std::vector<Named> all;
  SymbolNames names(elf, table.names);
  RETURN_IF_ERROR(ForEachGoFunction(elf, table, [&](const GoFunction& function) {
    const auto name = names.At(function.name);
    all.push_back(
        {function.begin.value(), function.end.value(), name ? std::string(*name) : std::string()});
  }));
  return all;
}

Named Function(uint64_t number, const std::string& name) {
  const uint64_t begin = MadeGoProgram::kText + number * MadeGoProgram::kSize;
  return {begin, begin + MadeGoProgram::kSize, name};
}

MadeGoProgram Program(Format format = Format::kGo20) {
  return {.names = {"_rt0_amd64_linux", "main.main", "main.(*Cache).cold"}, .format = format};
}

testing::Matcher<std::vector<Named>> AreThoseOfTheProgram() {
  return ElementsAre(Function(0, "_rt0_amd64_linux"), Function(1, "main.main"),
                     Function(2, "main.(*Cache).cold"));
}

TEST(GoFunctions, AreReadInEachFormat) {
  for (const Format format : kFormats) {
    const auto functions = Read(Program(format).Open());
    ASSERT_TRUE(functions) << functions.error().message();
    EXPECT_THAT(*functions, AreThoseOfTheProgram()) << static_cast<int>(format);
  }
}

TEST(GoFunctions, AreFoundWhereverTheTextIsSaidToBegin) {
  for (const Text text :
       {Text::kWritten, Text::kRelocated, Text::kInModule, Text::kInRelocatedModule}) {
    MadeGoProgram program = Program();
    program.text = text;
    const auto functions = Read(program.Open());
    ASSERT_TRUE(functions) << functions.error().message();
    EXPECT_THAT(*functions, AreThoseOfTheProgram()) << static_cast<int>(text);
    program.machine = EM_AARCH64;
    EXPECT_THAT(Read(program.Open()).value_or(std::vector<Named>()), AreThoseOfTheProgram());
  }
}

TEST(GoFunctions, AreNotGuessedWhereNobodySays) {
  MadeGoProgram program = Program();
  program.text = Text::kNowhere;
  EXPECT_EQ(Read(program.Open()).error().code(), ErrorCode::kMalformed);
}

TEST(GoFunctions, AreFoundInWhatLinkersMakeOfTheirSection) {
  MadeGoProgram program = Program();
  program.section = ".data.rel.ro.gopclntab";
  EXPECT_THAT(Read(program.Open()).value_or(std::vector<Named>()), AreThoseOfTheProgram());
  program.section = ".data.rel.ro";
  // What begins like a table and is none does not end the search.
  program.before = DwarfBytes().U64(7).U32(0xfffffff1).U16(0).U8(1).U8(8).U64(UINT64_MAX);
  EXPECT_THAT(Read(program.Open()).value_or(std::vector<Named>()), AreThoseOfTheProgram());
  program.section = ".data";
  EXPECT_EQ(Read(program.Open()).error().code(), ErrorCode::kNotFound);
}

TEST(GoFunctions, AreLeftOutIfTheyAreMalformed) {
  MadeGoProgram program = Program();
  std::vector<std::byte> image = program.Image();
  const DwarfBytes table = program.Table();
  const auto at =
      static_cast<size_t>(std::ranges::search(image, table.bytes()).begin() - image.begin());
  const size_t functions = table.size() - 3 * 20 - (3 * 8 + 4);
  const auto with = [&](size_t position, uint32_t value) {
    std::vector<std::byte> changed = image;
    std::memcpy(changed.data() + at + position, &value, sizeof(value));
    return Read(*ElfFile::FromBytes(std::move(changed))).value_or(std::vector<Named>());
  };
  EXPECT_THAT(with(functions + 12, UINT32_MAX),
              ElementsAre(Function(0, "_rt0_amd64_linux"), Function(2, "main.(*Cache).cold")))
      << "a record beyond the end";
  const uint64_t text = MadeGoProgram::kText;
  EXPECT_THAT(with(functions + 8, 0),
              ElementsAre(Named{text, text + 2 * MadeGoProgram::kSize, "main.main"},
                          Function(2, "main.(*Cache).cold")))
      << "one that ends where it begins";
  EXPECT_THAT(with(functions + 8, 0x250),
              ElementsAre(Named{text, text + 0x250, "_rt0_amd64_linux"}))
      << "one that ends before it begins";
}

// All ranges, as "begin-end:value".
std::string Values(const DwarfBytes& bytes, uint8_t unit = 1) {
  std::string all;
  GoPcValues values(bytes.bytes(), unit);
  while (values.Next()) {
    all += fmt::format("{}-{}:{} ", values.begin(), values.end(), values.value());
  }
  return all;
}

TEST(GoPcValues, AreSumsOfSignedChanges) {
  const DwarfBytes values = {2, 4, 0x30, 0xec, 1, 0x2f, 0x10, 0, 2, 1};
  EXPECT_EQ(Values(values), "0-4:0 4-240:24 240-256:0 ");
  EXPECT_EQ(Values(values, 4), "0-16:0 16-960:24 960-1024:0 ");
  EXPECT_EQ(Values({0, 7, 2, 1, 0}), "0-7:-1 7-8:0 ") << "only the first may be as before";
}

TEST(GoPcValues, EndWhereTheyAreMalformed) {
  EXPECT_EQ(Values({2, 4, 0x30}), "0-4:0 ") << "cut";
  EXPECT_EQ(Values({2, 4, 0x30, 0}), "0-4:0 ") << "a range without an end";
  EXPECT_EQ(Values({2, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1}), "0-4:0 ") << "too long a number";
  EXPECT_EQ(Values({}), "");
}

TEST(GoFunctions, SayWhereTheirStackDepthsAre) {
  for (const Format format : kFormats) {
    MadeGoProgram program = Program(format);
    program.stack_depths = {{2, 1, 0}, {4, 2, 0}};
    const ElfFile elf = program.Open();
    const auto table = FindGoFunctions(elf, *SectionTable::Read(elf));
    ASSERT_TRUE(table) << table.error().message();
    std::vector<int> first_bytes;
    const Result<void> read = ForEachGoFunction(elf, *table, [&](const GoFunction& function) {
      const uint64_t at = table->values.value() + function.stack_depths;
      const auto byte = ReadObject<uint8_t>(elf.bytes(), at);
      first_bytes.push_back(function.stack_depths == 0 || !byte ? -1 : *byte);
    });
    EXPECT_TRUE(read);
    EXPECT_THAT(first_bytes, ElementsAre(2, 4, -1)) << static_cast<int>(format);
  }
}

TEST(GoFunctions, SurviveATableThatIsCutOrDamaged) {
  for (const Format format : kFormats) {
    MadeGoProgram program = Program(format);
    program.text = Text::kInRelocatedModule;
    const std::vector<std::byte> image = program.Image();
    for (size_t size = 0; size < image.size(); ++size) {
      if (const auto cut = ElfFile::FromBytes({image.begin(), image.begin() + size})) {
        EXPECT_LE(Read(*cut).value_or(std::vector<Named>()).size(), 3U);
      }
      std::vector<std::byte> damaged = image;
      damaged[size] ^= std::byte{0xff};
      if (const auto elf = ElfFile::FromBytes(std::move(damaged))) {
        EXPECT_LE(Read(*elf).value_or(std::vector<Named>()).size(), 3U);
      }
    }
  }
}

}  // namespace
}  // namespace pyrometer
