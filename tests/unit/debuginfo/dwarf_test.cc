// SPDX-License-Identifier: Apache-2.0
// What DWARF tells of one program that compilers made in many ways. That it agrees with other
// readers, for whole programs, is shown by system.names_truth.
#include <string>
#include <utility>
#include <vector>

#include "binary/debug_links.h"
#include "binary/sections.h"
#include "binary/segments.h"
#include "debuginfo/dwarf_split_paths.h"
#include "tests/unit/debuginfo/dwarf_fixtures.h"

namespace pyrometer {
namespace {

class DwarfOf : public testing::TestWithParam<const char*> {};

TEST_P(DwarfOf, TellsFunctionsInlinedCallsAndLines) {
  const ElfFile elf = OpenFixture(GetParam());
  CollectedSource source;
  const Result<DwarfCounts> counts = ReadDwarf({.object = elf}, {}, source);
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_TRUE(source.is_sound());
  EXPECT_EQ(counts->malformed + counts->unsupported, 0U);
  EXPECT_EQ(Told(source.At(NmSymbolOf(GetParam(), "in_leaf").address)), kInLeaf);
  EXPECT_EQ(source.Find("main"), NmSymbolOf(GetParam(), "main").address);
}

INSTANTIATE_TEST_SUITE_P(EachKind, DwarfOf,
                         testing::Values("inlined_dwarf2", "inlined_dwarf3", "inlined_dwarf4",
                                         "inlined_dwarf5", "inlined_dwarf64", "inlined_zlib",
                                         "inlined_zlib_gnu", "inlined_zstd", "inlined_clang4",
                                         "inlined_clang5"),
                         [](const auto& of) { return std::string(of.param); });

TEST(Dwarf, IsReadFromTheDebugFileOfAStrippedObject) {
  const ElfFile elf = OpenFixture("inlined_stripped");
  CollectedSource source;
  EXPECT_EQ(ReadDwarf({.object = elf}, {}, source).error().code(), ErrorCode::kNotFound);
  const ElfFile debug = OpenFixture("inlined_debug");
  ASSERT_TRUE(ReadDwarf({.object = elf, .debug = &debug}, {}, source));
  EXPECT_EQ(Told(source.At(NmSymbolOf("inlined_dwarf5", "in_leaf").address)), kInLeaf);
}

// In a file with split units, without it, and which program that is of.
TEST(Dwarf, IsReadFromTheFilesOfSplitUnits) {
  for (const auto& [program, file] :
       {std::pair("inlined_split4", "inlined_split4.dwo"),
        std::pair("inlined_split4", "inlined_split4.dwp"),
        std::pair("inlined_split5", "inlined_split5.dwo"),
        std::pair("inlined_clang_split5", "inlined_clang_split5.dwo"),
        std::pair("inlined_clang_split5", "inlined_clang_split5.dwp")}) {
    SCOPED_TRACE(file);
    const ElfFile elf = OpenFixture(program);
    CollectedSource none;
    const Result<DwarfCounts> alone = ReadDwarf({.object = elf}, {}, none);
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->missing, 1U);
    EXPECT_EQ(none.functions(), 0U);
    const ElfFile split = *ElfFile::FromAnyType(MemoryBytes(FixtureBytes(file)));
    CollectedSource source;
    const Result<DwarfCounts> counts =
        ReadDwarf({.object = elf, .splits = {&split, 1}}, {}, source);
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->missing + counts->malformed + counts->unsupported, 0U);
    EXPECT_EQ(Told(source.At(NmSymbolOf(program, "in_leaf").address)), kInLeaf);
  }
}

TEST(Dwarf, TellsWhereTheCompilerPutSplitUnits) {
  const auto paths = [](const char* name, size_t most) {
    return ReadSplitPaths(OpenFixture(name), most);
  };
  for (const std::string name : {"inlined_split4", "inlined_split5"}) {
    EXPECT_EQ(paths(name.c_str(), 2), std::vector{FixturePath(name + ".dwo")});
  }
  const std::vector<std::string> two = paths("inlined_two_splits", 2);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1], FixturePath("inlined_two_splits.second.dwo"));
  EXPECT_EQ(paths("inlined_two_splits", 1), std::vector{two[0]}) << "no more than asked for";
  for (const char* name : {"inlined_dwarf5", "inlined_clang5", "stripped"}) {
    EXPECT_TRUE(paths(name, 2).empty()) << name;
  }
}

TEST(Dwarf, TakesNoSplitUnitsOfAnotherProgram) {
  const ElfFile elf = OpenFixture("inlined_split4");
  const ElfFile split = *ElfFile::FromAnyType(MemoryBytes(FixtureBytes("inlined_split5.dwo")));
  CollectedSource source;
  EXPECT_EQ(ReadDwarf({.object = elf, .splits = {&split, 1}}, {}, source)->missing, 1U);
}

TEST(Dwarf, LeavesOutWhatTheLinkerHasDropped) {
  const ElfFile elf = OpenFixture("dropped");
  ASSERT_TRUE(ExecutableSegmentAt(elf.segments(), ElfAddress(0))) << "not what it is made for";
  CollectedSource source;
  ASSERT_TRUE(ReadDwarf({.object = elf}, {}, source));
  EXPECT_EQ(source.Find("dropped"), std::nullopt);
  EXPECT_EQ(Told(source.At(NmSymbolOf("dropped", "main").address)), "main dropped.c:10");
  EXPECT_TRUE(source.At(uint64_t{0x40}).empty());
}

TEST(Dwarf, PassesNothingOnAfterTheSinkIsFull) {
  const ElfFile elf = OpenFixture("inlined_dwarf5");
  CollectedSource source;
  source.set_most(0);
  const Result<DwarfCounts> counts = ReadDwarf({.object = elf}, {}, source);
  ASSERT_TRUE(counts);
  EXPECT_TRUE(counts->is_cut);
  EXPECT_EQ(counts->units, 1U);
}

TEST(DebugLinks, AreWhatAStrippedObjectSays) {
  const Result<DebugLinks> links = ReadDebugLinks(OpenFixture("inlined_stripped"));
  ASSERT_TRUE(links);
  EXPECT_EQ(links->name, "inlined_debug");
  EXPECT_NE(links->checksum, 0U);
  EXPECT_EQ(links->supplement, "");
  EXPECT_EQ(ReadDebugLinks(OpenFixture("inlined_dwarf5"))->name, "");
}

TEST(DebugLinks, AreNoneIfTheirSectionIsEmpty) {
  std::vector<std::byte> image = FixtureBytes("inlined_stripped");
  const ElfFile whole = *ElfFile::FromBytes(image);
  const SectionTable table = *SectionTable::Read(whole);
  for (size_t i = 0; i < table.all().size(); ++i) {
    if (table.all()[i].name != ".gnu_debuglink") continue;
    const size_t header = whole.header().e_shoff + i * sizeof(Elf64_Shdr);
    auto section = Peek<Elf64_Shdr>(image, header);
    section.sh_size = 0;
    Poke(image, header, section);
  }
  EXPECT_EQ(ReadDebugLinks(*ElfFile::FromBytes(std::move(image)))->name, "");
}

}  // namespace
}  // namespace pyrometer
