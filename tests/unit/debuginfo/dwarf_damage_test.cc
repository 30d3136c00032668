// SPDX-License-Identifier: Apache-2.0
// Debug information that is cut, or wrong in any one byte: what is passed on makes sense in itself.
#include <algorithm>
#include <cstddef>

#include "binary/sections.h"
#include "tests/unit/debuginfo/dwarf_fixtures.h"

namespace pyrometer {
namespace {

class DamagedDwarf : public testing::TestWithParam<const char*> {
 protected:
  // Reads what is there, and returns whether it was all of it.
  static bool Read(std::vector<std::byte> image) {
    const Result<ElfFile> elf = ElfFile::FromBytes(std::move(image));
    if (!elf) return false;
    CollectedSource source;
    const Result<DwarfCounts> counts = ReadDwarf({.object = *elf}, {}, source);
    EXPECT_TRUE(source.is_sound());
    return counts && counts->malformed + counts->unsupported == 0 && counts->functions > 1;
  }

  // Of the sections with debug information: where their headers are.
  static std::vector<size_t> SectionHeaders(const std::vector<std::byte>& image) {
    const ElfFile elf = *ElfFile::FromBytes(image);
    const SectionTable table = *SectionTable::Read(elf);
    std::vector<size_t> headers;
    for (size_t i = 0; i < table.all().size(); ++i) {
      if (!table.all()[i].name.starts_with(".debug_")) continue;
      headers.push_back(elf.header().e_shoff + i * sizeof(Elf64_Shdr));
    }
    return headers;
  }
};

TEST_P(DamagedDwarf, MakesSenseWhereverASectionEnds) {
  const std::vector<std::byte> image = FixtureBytes(GetParam());
  ASSERT_TRUE(Read(image));
  for (const size_t header : SectionHeaders(image)) {
    const auto section = Peek<Elf64_Shdr>(image, header);
    for (uint64_t size = 0; size < section.sh_size; ++size) {
      std::vector<std::byte> cut = image;
      auto shorter = section;
      shorter.sh_size = size;
      Poke(cut, header, shorter);
      Read(std::move(cut));
    }
  }
}

TEST_P(DamagedDwarf, MakesSenseWhicheverByteIsWrong) {
  const std::vector<std::byte> image = FixtureBytes(GetParam());
  size_t noticed = 0;
  for (const size_t header : SectionHeaders(image)) {
    const auto section = Peek<Elf64_Shdr>(image, header);
    for (uint64_t at = section.sh_offset; at < section.sh_offset + section.sh_size; ++at) {
      for (const std::byte change : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
        std::vector<std::byte> damaged = image;
        damaged[at] ^= change;
        noticed += Read(std::move(damaged)) ? 0 : 1;
      }
    }
  }
  EXPECT_GT(noticed, 100U) << "of most that matters";
}

INSTANTIATE_TEST_SUITE_P(EachKind, DamagedDwarf,
                         testing::Values("inlined_dwarf2", "inlined_dwarf4", "inlined_dwarf5",
                                         "inlined_clang5"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace pyrometer
