// SPDX-License-Identifier: Apache-2.0
#include "binary/elf_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

TEST(ElfFile, ReadsExecutablesAndLibrariesOfAllKinds) {
  for (const char* name : {"pie", "non_pie", "static_pie", "shared.so", "stripped"}) {
    const Result<UniqueFd> fd = Open(FixturePath(name), O_RDONLY);
    const Result<ElfFile> elf = ElfFile::Open(fd->get());
    ASSERT_TRUE(elf.has_value()) << name << ": " << elf.error().message();
    EXPECT_TRUE(std::ranges::any_of(elf->segments(), &Segment::executable)) << name;
    EXPECT_FALSE(std::ranges::all_of(elf->segments(), &Segment::executable)) << name;
  }
}

TEST(ElfFile, ListsEveryExecutableSegment) {
  const ElfFile elf = OpenFixture("two_texts");
  EXPECT_GE(std::ranges::count_if(elf.segments(), &Segment::executable), 2);
}

TEST(ElfFile, NeedsNoSections) {
  std::vector<std::byte> image = FixtureBytes("pie");
  RemoveSectionHeaders(image);
  EXPECT_EQ(ElfFile::FromBytes(image)->segments(), OpenFixture("pie").segments());
}

TEST(ElfFile, RefusesHeadersThatLie) {
  struct Case {
    const char* what;
    std::function<void(Elf64_Ehdr&, Elf64_Phdr&)> damage;  // the second: of a PT_LOAD
    ErrorCode code;
  };
  const Case cases[] = {
      {"no magic", [](auto& e, auto&) { e.e_ident[1] = 'X'; }, ErrorCode::kInvalid},
      {"32 bits", [](auto& e, auto&) { e.e_ident[EI_CLASS] = ELFCLASS32; },
       ErrorCode::kUnsupported},
      {"big endian", [](auto& e, auto&) { e.e_ident[EI_DATA] = ELFDATA2MSB; },
       ErrorCode::kUnsupported},
      {"RISC-V", [](auto& e, auto&) { e.e_machine = EM_RISCV; }, ErrorCode::kUnsupported},
      {"core", [](auto& e, auto&) { e.e_type = ET_CORE; }, ErrorCode::kUnsupported},
      {"object file", [](auto& e, auto&) { e.e_type = ET_REL; }, ErrorCode::kUnsupported},
      {"small program headers", [](auto& e, auto&) { e.e_phentsize = 32; }, ErrorCode::kMalformed},
      {"many program headers", [](auto& e, auto&) { e.e_phnum = 65535; }, ErrorCode::kMalformed},
      {"program headers beyond the end", [](auto& e, auto&) { e.e_phoff = uint64_t{1} << 40; },
       ErrorCode::kMalformed},
      {"program headers at the end of numbers", [](auto& e, auto&) { e.e_phoff = kHuge - 8; },
       ErrorCode::kMalformed},
      {"file range overflows", [](auto&, auto& p) { p.p_offset = kHuge; }, ErrorCode::kMalformed},
      {"address range overflows", [](auto&, auto& p) { p.p_vaddr = kHuge; }, ErrorCode::kMalformed},
      {"more in the file than in memory", [](auto&, auto& p) { p.p_filesz = p.p_memsz + 1; },
       ErrorCode::kMalformed},
  };
  for (const Case& c : cases) {
    std::vector<std::byte> image = FixtureBytes("pie");
    auto header = Peek<Elf64_Ehdr>(image, 0);
    size_t at = header.e_phoff;
    while (Peek<Elf64_Phdr>(image, at).p_type != PT_LOAD ||
           Peek<Elf64_Phdr>(image, at).p_filesz == 0) {
      at += sizeof(Elf64_Phdr);
    }
    auto segment = Peek<Elf64_Phdr>(image, at);
    c.damage(header, segment);
    Poke(image, at, segment);
    Poke(image, 0, header);
    const Result<ElfFile> elf = ElfFile::FromBytes(image);
    ASSERT_FALSE(elf.has_value()) << c.what;
    EXPECT_EQ(elf.error().code(), c.code) << c.what << ": " << elf.error().message();
  }
}

TEST(ElfFile, MayBeRelocatableIfOthersShareIt) {
  std::vector<std::byte> image = FixtureBytes("pie");
  auto header = Peek<Elf64_Ehdr>(image, 0);
  for (const auto& [type, is_read] : {std::pair{ET_REL, true}, {ET_DYN, true}, {ET_CORE, false}}) {
    header.e_type = static_cast<Elf64_Half>(type);
    Poke(image, 0, header);
    EXPECT_EQ(ElfFile::FromShared(MemoryBytes(image)).has_value(), is_read) << type;
  }
}

TEST(ElfFile, RefusesFilesCutWithinTheirHeaders) {
  const std::vector<std::byte> image = FixtureBytes("pie");
  const auto header = Peek<Elf64_Ehdr>(image, 0);
  const size_t needed = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  for (size_t size = 0; size <= needed; ++size) {
    const Result<ElfFile> elf =
        ElfFile::FromBytes(std::vector<std::byte>(image.begin(), image.begin() + size));
    EXPECT_EQ(elf.has_value(), size == needed) << size;
  }
}

}  // namespace
}  // namespace pyrometer
