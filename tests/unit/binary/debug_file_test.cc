// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_file.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "binary/notes.h"
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

TEST(AlternatePaths, BeginWithTheBuildIdAndLieBelowTheDebugFiles) {
  constexpr std::array<std::byte, 2> kBytes = {std::byte{0xab}, std::byte{0x01}};
  AlternateLink link{.name = "../.dwz/common"};
  link.build_id = BuildId(kBytes);
  const std::string by_build_id = "/usr/lib/debug/.build-id/ab/01.debug";
  EXPECT_EQ(AlternatePaths("/usr/lib/debug/bin/program.debug", link),
            (std::vector<std::string>{by_build_id, "/usr/lib/debug/.dwz/common"}));
  EXPECT_EQ(AlternatePaths("/usr/lib/debug/program.debug", link),
            (std::vector<std::string>{by_build_id}));
  for (const char* name :
       {"/proc/kmsg", "/usr/lib/debug/../../../proc/kmsg", "/usr/lib/debugger", "common"}) {
    link.name = name;
    EXPECT_EQ(AlternatePaths("/usr/bin/program", link), (std::vector<std::string>{by_build_id}))
        << name;
  }
  link.name = "/usr/lib/debug/.dwz/common";
  EXPECT_EQ(AlternatePaths("memfd:program", link).back(), link.name);
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

ElfFile OpenShared(const char* fixture) {
  return *ElfFile::FromShared(MemoryBytes(FixtureBytes(fixture)));
}

Result<AlternateLink> LinkIn(const std::vector<std::byte>& image) {
  const ElfFile elf = *ElfFile::FromShared(MemoryBytes(image));
  return ReadAlternateLink(elf, *SectionTable::Read(elf));
}

TEST(ReadAlternateLink, NamesTheFileAndItsId) {
  for (const std::string name : {"shared_4", "shared_5", "shared_standard"}) {
    const Result<AlternateLink> link = LinkIn(FixtureBytes(name + ".so"));
    ASSERT_TRUE(link) << name << link.error().message();
    EXPECT_EQ(link->name, name + ".debug");
    const ElfFile alternate = OpenShared((name + ".debug").c_str());
    EXPECT_FALSE(link->build_id.empty());
    EXPECT_EQ(link->build_id, ReadAlternateId(alternate, *SectionTable::Read(alternate))) << name;
  }
}

TEST(ReadAlternateLink, IsNotThereInOthers) {
  for (const char* fixture : {"lines_5.so", "shared_5.debug", "shared_standard.debug"}) {
    EXPECT_EQ(LinkIn(FixtureBytes(fixture)).error().code(), ErrorCode::kNotFound) << fixture;
  }
}

std::vector<std::byte> BytesOf(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(ReadAlternateLink, RefusesWhatIsNone) {
  const std::string id(20, 'i');
  const std::string nul(1, '\0');
  const std::string head("\5\0\0", 3);
  struct Case {
    const char* fixture;
    const char* section;
    std::string content;
    std::optional<ErrorCode> error{};
  };
  const Case cases[] = {
      {"shared_5.so", ".gnu_debugaltlink", "name" + nul + id},
      {"shared_5.so", ".gnu_debugaltlink", std::string(4096, 'n') + nul + std::string(64, 'i')},
      {"shared_5.so", ".gnu_debugaltlink", "", ErrorCode::kMalformed},
      {"shared_5.so", ".gnu_debugaltlink", "name", ErrorCode::kMalformed},
      {"shared_5.so", ".gnu_debugaltlink", "name" + nul, ErrorCode::kMalformed},
      {"shared_5.so", ".gnu_debugaltlink", nul + id, ErrorCode::kMalformed},
      {"shared_5.so", ".gnu_debugaltlink", std::string(4097, 'n') + nul + id,
       ErrorCode::kMalformed},
      {"shared_5.so", ".gnu_debugaltlink", "name" + nul + std::string(65, 'i'),
       ErrorCode::kMalformed},
      {"shared_5.so", ".gnu_debugaltlink", std::string(1 << 20, 'n'), ErrorCode::kExhausted},
      {"shared_standard.so", ".debug_sup", head + "name" + nul + "\24" + id},
      {"shared_standard.so", ".debug_sup", head + "name" + nul + "\25" + id, ErrorCode::kMalformed},
      {"shared_standard.so", ".debug_sup", head + "name" + nul + nul, ErrorCode::kMalformed},
      {"shared_standard.so", ".debug_sup", head + nul + "\24" + id, ErrorCode::kMalformed},
      {"shared_standard.so", ".debug_sup", head + "name", ErrorCode::kMalformed},
      {"shared_standard.so", ".debug_sup", "\4" + head.substr(1) + "name" + nul + "\24" + id,
       ErrorCode::kMalformed},
      {"shared_standard.so", ".debug_sup", "", ErrorCode::kMalformed}};
  for (const Case& c : cases) {
    std::vector<std::byte> image = FixtureBytes(c.fixture);
    SetSection(image, c.section, BytesOf(c.content));
    const Result<AlternateLink> link = LinkIn(image);
    ASSERT_EQ(link.has_value(), !c.error) << c.content.substr(0, 100);
    if (!link) {
      EXPECT_EQ(link.error().code(), *c.error) << c.content.substr(0, 100);
    }
  }
}

TEST(ReadAlternateId, IsEmptyWithoutOne) {
  const ElfFile elf = OpenFixture("no_build_id.so");
  EXPECT_TRUE(ReadAlternateId(elf, *SectionTable::Read(elf)).empty());
  const ElfFile other = OpenFixture("shared_standard.so");
  EXPECT_EQ(ReadAlternateId(other, *SectionTable::Read(other)), ReadBuildId(other));
}

}  // namespace
}  // namespace pyrometer
