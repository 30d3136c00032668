// SPDX-License-Identifier: Apache-2.0
#include "binary/notes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/file_hash.h"
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
  EXPECT_EQ(ReadBuildIds(*ElfFile::FromBytes(image)).gnu.ToHex(), kFixtureBuildId);
}

TEST(BuildId, IsReadFromNoteSectionsWithoutNoteSegments) {
  std::vector<std::byte> image = FixtureBytes("pie");
  ChangeSegmentTypes(image, PT_NOTE, PT_NULL);
  EXPECT_EQ(ReadBuildIds(*ElfFile::FromBytes(image)).gnu.ToHex(), kFixtureBuildId);
}

TEST(BuildId, IsEmptyIfThereIsNone) {
  EXPECT_TRUE(ReadBuildIds(OpenFixture("no_build_id.so")).gnu.empty());
}

TEST(BuildId, OfGoIsReadFromItsNote) {
  using std::string_literals::operator""s;
  const std::string id = "abc-_/def/ghi/jkl";
  const std::string go = Note(4, 17, 4, "Go\0\0"s + id + "\0\0\0"s);
  std::vector<std::byte> image = FixtureBytes("no_build_id.so");
  const auto header = Peek<Elf64_Ehdr>(image, 0);
  for (int i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = Peek<Elf64_Phdr>(image, at);
    if (segment.p_type != PT_GNU_STACK) continue;
    segment.p_type = PT_NOTE;
    segment.p_offset = image.size();
    segment.p_filesz = go.size();
    segment.p_align = 4;
    Poke(image, at, segment);
  }
  const auto notes = std::as_bytes(std::span(go));
  image.insert(image.end(), notes.begin(), notes.end());
  const ObjectFacts facts = FactsOf(*ElfFile::FromBytes(image));
  EXPECT_EQ(facts.go_build_id, id);
  EXPECT_TRUE(facts.build_id.empty());
  EXPECT_EQ(facts.hash, HashOf(std::span(image).first(kHashedPart),
                               std::span(image).last(kHashedPart), image.size()));
  image.back() = std::byte{0x1b};
  image[image.size() - 4] = std::byte{0x1b};
  EXPECT_EQ(FactsOf(*ElfFile::FromBytes(image)).go_build_id, "") << "not printable";
}

TEST(ObjectFacts, HaveAHashOnlyWithoutABuildId) {
  EXPECT_TRUE(FactsOf(OpenFixture("shared.so")).hash.empty());
  const std::vector<std::byte> bytes = FixtureBytes("no_build_id.so");
  ASSERT_GT(bytes.size(), kHashedPart);
  EXPECT_EQ(FactsOf(OpenFixture("no_build_id.so")).hash,
            HashOf(std::span(bytes).first(kHashedPart), std::span(bytes).last(kHashedPart),
                   bytes.size()));
}

TEST(ObjectFacts, SayWhetherThereAreMoreNamesThanAProgramNeeds) {
  for (const char* fixture : {"pie", "mini_debug", "compressed"}) {
    EXPECT_TRUE(FactsOf(OpenFixture(fixture)).tells_names) << fixture;
  }
  EXPECT_FALSE(FactsOf(OpenFixture("stripped")).tells_names);
}

// What only tells of sources, a stripped Go program's table for one, has all names there are.
TEST(ObjectFacts, SayWhetherNamesComeWithSourcesOnly) {
  EXPECT_FALSE(FactsOf(OpenFixture("stripped")).named_by_sources);
  std::vector<std::byte> image = FixtureBytes("compressed");
  EXPECT_FALSE(FactsOf(*ElfFile::FromBytes(image)).named_by_sources);
  ChangeSectionTypes(image, SHT_SYMTAB, SHT_PROGBITS);
  const ObjectFacts facts = FactsOf(*ElfFile::FromBytes(image));
  EXPECT_TRUE(facts.named_by_sources);
  EXPECT_TRUE(facts.may_tell_sources);
  EXPECT_TRUE(facts.tells_names);
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
