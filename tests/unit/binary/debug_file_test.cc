// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_file.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

TEST(DebugFilePath, IsMadeOfTheBuildId) {
  constexpr std::array<std::byte, 3> kBytes = {std::byte{0xab}, std::byte{0x01}, std::byte{0xef}};
  EXPECT_EQ(DebugFilePath(BuildId(kBytes)), "/usr/lib/debug/.build-id/ab/01ef.debug");
}

TEST(DebugFilePath, IsEmptyWhereTheBuildIdIsTooShort) {
  constexpr std::array<std::byte, 1> kByte = {std::byte{0xab}};
  EXPECT_EQ(DebugFilePath(BuildId(kByte)), "");
  EXPECT_EQ(DebugFilePath(BuildId()), "");
}

TEST(DebugLinkPaths, AreThoseOfGdb) {
  EXPECT_EQ(DebugLinkPaths("/usr/bin/program", "program.debug"),
            (std::vector<std::string>{"/usr/bin/program.debug", "/usr/bin/.debug/program.debug",
                                      "/usr/lib/debug/usr/bin/program.debug"}));
  EXPECT_EQ(DebugLinkPaths("/program", "program"),
            (std::vector<std::string>{"/.debug/program", "/usr/lib/debug/program"}))
      << "a file is not its own debug file";
  EXPECT_TRUE(DebugLinkPaths("memfd:program", "program.debug").empty());
  EXPECT_TRUE(DebugLinkPaths("", "program.debug").empty());
}

TEST(DebugLinks, SayWhereDebugInformationIs) {
  const DebugLinks own = *ReadDebugLinks(OpenFixture("lines_5.so"));
  EXPECT_TRUE(own.has_debug_info);
  EXPECT_FALSE(own.debug_file.has_value());
  const DebugLinks stripped = *ReadDebugLinks(OpenFixture("lines_stripped.so"));
  EXPECT_FALSE(stripped.has_debug_info);
  ASSERT_TRUE(stripped.debug_file.has_value());
  EXPECT_EQ(stripped.debug_file->name, "lines.debug");
  EXPECT_EQ(stripped.debug_file->checksum, *ChecksumOf(*MemoryBytes(FixtureBytes("lines.debug"))));
  EXPECT_TRUE(ReadDebugLinks(OpenFixture("lines.debug"))->has_debug_info);
}

TEST(DebugLinks, LeadNowhereElse) {
  // Where the name and its checksum lie, "lines.debug\0" and four bytes.
  std::vector<std::byte> image = FixtureBytes("lines_stripped.so");
  const SectionTable sections = *SectionTable::Read(*ElfFile::FromBytes(image));
  const uint64_t at = sections.Find(".gnu_debuglink")->header.sh_offset;
  for (const std::string& name :
       {std::string("../../x.dbg"), std::string("/etc/passwd"), std::string(".\0..debug..", 11),
        std::string("..\0.debug...", 11), std::string("\0ines.debug", 11)}) {
    for (size_t i = 0; i < name.size(); ++i) Poke(image, at + i, name[i]);
    const Result<DebugLinks> links = ReadDebugLinks(*ElfFile::FromBytes(image));
    ASSERT_TRUE(links.has_value());
    EXPECT_FALSE(links->debug_file.has_value()) << name;
  }
}

TEST(AlternatePaths, BeginWithTheBuildId) {
  constexpr std::array<std::byte, 2> kBytes = {std::byte{0xab}, std::byte{0x01}};
  AlternateLink link{.name = "../.dwz/common"};
  link.build_id = BuildId(kBytes);
  EXPECT_EQ(AlternatePaths("/usr/lib/debug/program.debug", link),
            (std::vector<std::string>{"/usr/lib/debug/.build-id/ab/01.debug",
                                      "/usr/lib/debug/../.dwz/common"}));
  link.name = "/usr/lib/debug/.dwz/common";
  EXPECT_EQ(AlternatePaths("memfd:program", link).back(), link.name);
  link.name = "common";
  EXPECT_EQ(AlternatePaths("memfd:program", link).size(), 1U);
}

TEST(DebugLinks, AreNotReadBeyondTheirSection) {
  std::vector<std::byte> image = FixtureBytes("lines_stripped.so");
  const SectionTable sections = *SectionTable::Read(*ElfFile::FromBytes(image));
  const uint64_t headers = Peek<Elf64_Ehdr>(image, 0).e_shoff;
  const Section* const link = sections.Find(".gnu_debuglink");
  const auto index = static_cast<size_t>(link - sections.all().data());
  for (uint64_t size = 0; size < link->header.sh_size; ++size) {
    const size_t at = headers + index * sizeof(Elf64_Shdr);
    auto header = Peek<Elf64_Shdr>(image, at);
    header.sh_size = size;
    Poke(image, at, header);
    EXPECT_FALSE(ReadDebugLinks(*ElfFile::FromBytes(image))->debug_file.has_value()) << size;
  }
}

}  // namespace
}  // namespace pyrometer
