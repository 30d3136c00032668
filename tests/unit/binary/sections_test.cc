// SPDX-License-Identifier: Apache-2.0
#include "binary/sections.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr size_t kLimit = size_t{64} << 20;
constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

constexpr uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD
constexpr std::pair<const char*, uint32_t> kCompressed[] = {{"compressed", ELFCOMPRESS_ZLIB},
                                                            {"compressed_zstd", kZstd}};

TEST(SectionTable, FindsSectionsByNameTypeAndIndex) {
  const SectionTable table = *SectionTable::Read(OpenFixture("pie"));
  const Section* const text = table.Find(".text");
  ASSERT_NE(text, nullptr);
  EXPECT_NE(text->header.sh_flags & SHF_EXECINSTR, 0U);
  EXPECT_EQ(table.FindType(SHT_SYMTAB)->name, ".symtab");
  EXPECT_EQ(table.At(static_cast<uint32_t>(text - table.all().data())), text);
  EXPECT_EQ(table.At(60000), nullptr);
  EXPECT_EQ(table.Find(".none"), nullptr);
}

TEST(SectionTable, IsEmptyWithoutSections) {
  std::vector<std::byte> image = FixtureBytes("pie");
  RemoveSectionHeaders(image);
  EXPECT_TRUE(SectionTable::Read(*ElfFile::FromBytes(image))->all().empty());
}

TEST(SectionTable, TakesCountsFromSectionZeroWhenTheyDoNotFitTheHeader) {
  std::vector<std::byte> image = FixtureBytes("pie");
  auto header = Peek<Elf64_Ehdr>(image, 0);
  auto zero = Peek<Elf64_Shdr>(image, header.e_shoff);
  zero.sh_size = std::exchange(header.e_shnum, uint16_t{0});
  zero.sh_link = std::exchange(header.e_shstrndx, uint16_t{SHN_XINDEX});
  Poke(image, header.e_shoff, zero);
  Poke(image, 0, header);
  const Result<SectionTable> table = SectionTable::Read(*ElfFile::FromBytes(image));
  ASSERT_TRUE(table.has_value());
  EXPECT_NE(table->Find(".text"), nullptr);
}

TEST(SectionTable, RefusesHeadersThatLie) {
  struct Case {
    const char* what;
    std::function<void(Elf64_Ehdr&, Elf64_Shdr&, Elf64_Shdr&)> damage;  // sections 0, and of names
  };
  const Case cases[] = {
      {"beyond the end", [](auto& e, auto&, auto&) { e.e_shoff = uint64_t{1} << 40; }},
      {"at the end of numbers", [](auto& e, auto&, auto&) { e.e_shoff = kHuge - 3; }},
      {"wrong entry size", [](auto& e, auto&, auto&) { e.e_shentsize = 40; }},
      {"more than the file holds", [](auto& e, auto&, auto&) { e.e_shnum = 65535; }},
      {"huge count in section 0",
       [](auto& e, auto& zero, auto&) {
         e.e_shnum = 0;
         zero.sh_size = kHuge;
       }},
      {"names of another type", [](auto&, auto&, auto& names) { names.sh_type = SHT_PROGBITS; }},
      {"names too large", [](auto&, auto&, auto& names) { names.sh_size = kHuge; }},
      {"names beyond the end", [](auto&, auto&, auto& names) { names.sh_offset = kHuge; }},
  };
  for (const Case& c : cases) {
    std::vector<std::byte> image = FixtureBytes("pie");
    auto header = Peek<Elf64_Ehdr>(image, 0);
    const size_t zero_at = header.e_shoff;
    const size_t names_at = zero_at + header.e_shstrndx * sizeof(Elf64_Shdr);
    auto zero = Peek<Elf64_Shdr>(image, zero_at);
    auto names = Peek<Elf64_Shdr>(image, names_at);
    c.damage(header, zero, names);
    Poke(image, zero_at, zero);
    Poke(image, names_at, names);
    Poke(image, 0, header);
    const Result<SectionTable> table = SectionTable::Read(*ElfFile::FromBytes(image));
    ASSERT_FALSE(table.has_value()) << c.what;
    EXPECT_EQ(table.error().code(), ErrorCode::kMalformed) << c.what;
  }
}

TEST(ReadSection, DecompressesWhatIsCompressed) {
  const ElfFile plain = OpenFixture("decompressed");
  const auto expected =
      *ReadSection(plain, *SectionTable::Read(plain)->Find(".debug_info"), kLimit);
  for (const auto& [fixture, type] : kCompressed) {
    const ElfFile compressed = OpenFixture(fixture);
    const SectionTable compressed_sections = *SectionTable::Read(compressed);
    const Section* const section = compressed_sections.Find(".debug_info");
    ASSERT_NE(section, nullptr);
    ASSERT_NE(section->header.sh_flags & SHF_COMPRESSED, 0U);
    const auto header = *ReadObject<Elf64_Chdr>(compressed.bytes(), section->header.sh_offset);
    ASSERT_EQ(header.ch_type, type);
    const auto content = ReadSection(compressed, *section, kLimit);
    ASSERT_TRUE(content.has_value()) << content.error().message();
    EXPECT_EQ(*content, expected) << fixture;
  }
}

// Some linkers compress a section in pieces.
TEST(ReadSection, JoinsTheFramesOfZstd) {
  std::vector<std::byte> image = FixtureBytes("compressed_zstd");
  const SectionTable sections = *SectionTable::Read(*ElfFile::FromBytes(image));
  Section section = *sections.Find(".debug_info");
  const ElfFile whole = *ElfFile::FromBytes(image);
  const std::vector<std::byte> once = *ReadSection(whole, section, kLimit);
  const uint64_t at = section.header.sh_offset;
  const std::vector<std::byte> raw =
      *ReadArray<std::byte>(whole.bytes(), at, section.header.sh_size);
  auto header = Peek<Elf64_Chdr>(raw, 0);
  header.ch_size *= 2;
  section.header.sh_offset = image.size();
  image.insert(image.end(), raw.begin(), raw.end());
  image.insert(image.end(), raw.begin() + sizeof(header), raw.end());
  section.header.sh_size = image.size() - section.header.sh_offset;
  Poke(image, section.header.sh_offset, header);
  const auto content = ReadSection(*ElfFile::FromBytes(image), section, kLimit);
  ASSERT_TRUE(content.has_value()) << content.error().message();
  std::vector<std::byte> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(*content, twice);
}

TEST(ReadSection, RefusesCompressedBytesThatEndEarly) {
  for (const auto& [fixture, type] : kCompressed) {
    const ElfFile elf = OpenFixture(fixture);
    Section section = *SectionTable::Read(elf)->Find(".debug_info");
    for (const uint64_t size :
         {section.header.sh_size - 1, section.header.sh_size / 2, sizeof(Elf64_Chdr) + 1,
          sizeof(Elf64_Chdr), sizeof(Elf64_Chdr) - 1}) {
      section.header.sh_size = size;
      const auto content = ReadSection(elf, section, kLimit);
      ASSERT_FALSE(content.has_value()) << fixture << " " << size;
      EXPECT_EQ(content.error().code(), ErrorCode::kMalformed) << fixture << " " << size;
    }
  }
}

// Not all damage shows: then there are other bytes, as many.
TEST(ReadSection, DecompressesWithinBoundsWithAnyByteChanged) {
  for (const auto& [fixture, type] : kCompressed) {
    const std::vector<std::byte> image = FixtureBytes(fixture);
    const Section section = *SectionTable::Read(*ElfFile::FromBytes(image))->Find(".debug_abbrev");
    const auto size = Peek<Elf64_Chdr>(image, section.header.sh_offset).ch_size;
    for (uint64_t at = sizeof(Elf64_Chdr); at < section.header.sh_size; ++at) {
      for (const unsigned change : {0xffU, 0x01U, 0x80U}) {
        std::vector<std::byte> damaged = image;
        damaged[section.header.sh_offset + at] ^= static_cast<std::byte>(change);
        const auto content = ReadSection(*ElfFile::FromBytes(damaged), section, kLimit);
        EXPECT_EQ(content ? content->size() : size, size);
      }
    }
  }
}

TEST(ReadSection, GivesNothingForSectionsWithoutBytes) {
  const ElfFile elf = OpenFixture("pie");
  const SectionTable sections = *SectionTable::Read(elf);
  EXPECT_EQ(ReadSection(elf, *sections.FindType(SHT_NOBITS), 0)->size(), 0U);
}

TEST(ReadSection, HonoursItsLimit) {
  const ElfFile elf = OpenFixture("pie");
  const SectionTable sections = *SectionTable::Read(elf);
  const Section& text = *sections.Find(".text");
  EXPECT_TRUE(ReadSection(elf, text, text.header.sh_size).has_value());
  EXPECT_EQ(ReadSection(elf, text, text.header.sh_size - 1).error().code(), ErrorCode::kExhausted);
}

TEST(ReadSection, RefusesCompressionHeadersThatLie) {
  struct Case {
    const char* fixture;
    uint32_t type;
    uint64_t size;
    ErrorCode code;
  };
  const Case cases[] = {{"compressed", ELFCOMPRESS_ZLIB, kHuge, ErrorCode::kExhausted},
                        {"compressed", ELFCOMPRESS_ZLIB, kLimit, ErrorCode::kMalformed},
                        {"compressed", ELFCOMPRESS_ZLIB, 1, ErrorCode::kMalformed},
                        {"compressed", ELFCOMPRESS_ZLIB, 0, ErrorCode::kMalformed},
                        {"compressed", kZstd, 100, ErrorCode::kMalformed},
                        {"compressed", 77, 100, ErrorCode::kUnsupported},
                        {"compressed_zstd", kZstd, kHuge, ErrorCode::kExhausted},
                        {"compressed_zstd", kZstd, kLimit, ErrorCode::kMalformed},
                        {"compressed_zstd", kZstd, 1 << 20, ErrorCode::kMalformed},
                        {"compressed_zstd", kZstd, 1, ErrorCode::kMalformed},
                        {"compressed_zstd", kZstd, 0, ErrorCode::kMalformed},
                        {"compressed_zstd", ELFCOMPRESS_ZLIB, 100, ErrorCode::kMalformed}};
  for (const Case& c : cases) {
    std::vector<std::byte> image = FixtureBytes(c.fixture);
    const ElfFile good = *ElfFile::FromBytes(image);
    const SectionTable sections = *SectionTable::Read(good);
    const Section& section = *sections.Find(".debug_info");
    auto header = Peek<Elf64_Chdr>(image, section.header.sh_offset);
    header.ch_type = c.type;
    header.ch_size = c.size;
    Poke(image, section.header.sh_offset, header);
    const auto content = ReadSection(*ElfFile::FromBytes(image), section, kLimit);
    ASSERT_FALSE(content.has_value()) << c.fixture << " " << c.size;
    EXPECT_EQ(content.error().code(), c.code)
        << c.fixture << " " << c.size << " " << content.error().message();
  }
}

}  // namespace
}  // namespace pyrometer
