// SPDX-License-Identifier: Apache-2.0
#include "binary/notes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "binary/object_facts.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr char kFixtureBuildId[] = "0123456789abcdef";

std::string Note(uint32_t name_size, uint32_t content_size, uint32_t type, std::string_view bytes) {
  std::string note(12, '\0');
  std::memcpy(note.data(), &name_size, 4);
  std::memcpy(note.data() + 4, &content_size, 4);
  std::memcpy(note.data() + 8, &type, 4);
  return note.append(bytes);
}

std::string BuildIdIn(const std::string& notes, uint64_t alignment = 4) {
  return FindBuildId(std::as_bytes(std::span(notes)), alignment).ToHex();
}

TEST(BuildId, IsReadFromNoteSegments) {
  std::vector<std::byte> image = FixtureBytes("pie");
  RemoveSectionHeaders(image);
  EXPECT_EQ(ReadBuildId(*ElfFile::FromBytes(image)).ToHex(), kFixtureBuildId);
}

TEST(BuildId, IsReadFromNoteSectionsWithoutNoteSegments) {
  std::vector<std::byte> image = FixtureBytes("pie");
  const auto header = Peek<Elf64_Ehdr>(image, 0);
  for (int i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = Peek<Elf64_Phdr>(image, at);
    if (segment.p_type == PT_NOTE) segment.p_type = PT_NULL;
    Poke(image, at, segment);
  }
  EXPECT_EQ(ReadBuildId(*ElfFile::FromBytes(image)).ToHex(), kFixtureBuildId);
}

TEST(BuildId, IsEmptyIfThereIsNone) {
  EXPECT_TRUE(ReadBuildId(OpenFixture("no_build_id.so")).empty());
}

TEST(BuildId, IsPartOfTheFacts) {
  const ElfFile elf = OpenFixture("shared.so");
  const ObjectFacts facts = FactsOf(elf);
  EXPECT_EQ(facts.build_id.ToHex(), kFixtureBuildId);
  EXPECT_EQ(facts.segments, elf.segments());
}

TEST(BuildId, IsFoundBehindOtherNotes) {
  using std::string_literals::operator""s;
  const std::string id = Note(4, 3, NT_GNU_BUILD_ID, "GNU\0\xab\xcd\xef"s);
  EXPECT_EQ(BuildIdIn(id), "abcdef");
  EXPECT_EQ(BuildIdIn(Note(3, 5, 1, "Go\0\0hello\0\0\0"s) + id), "abcdef");
  EXPECT_EQ(BuildIdIn(Note(4, 4, NT_GNU_PROPERTY_TYPE_0, "GNU\0abcd\0\0\0\0"s) + id, 8), "abcdef");
  EXPECT_EQ(BuildIdIn(Note(4, 3, NT_GNU_BUILD_ID, "Xen\0\xab\xcd\xef\0"s) + id), "abcdef");
}

TEST(BuildId, IsNotReadFromNotesThatLie) {
  using std::string_literals::operator""s;
  const std::string cases[] = {
      "",
      "short",
      Note(0xffffffff, 3, NT_GNU_BUILD_ID, "GNU\0\xab\xcd\xef"s),
      Note(4, 0xffffffff, NT_GNU_BUILD_ID, "GNU\0\xab\xcd\xef"s),
      Note(0xffffffff, 0xffffffff, NT_GNU_BUILD_ID, "GNU\0"s),
      Note(4, 4, NT_GNU_BUILD_ID, "GNU\0\xab\xcd\xef"s),
      Note(4, 0, NT_GNU_BUILD_ID, "GNU\0"s),
  };
  for (const std::string& notes : cases) EXPECT_EQ(BuildIdIn(notes), "");
}

}  // namespace
}  // namespace pyrometer
