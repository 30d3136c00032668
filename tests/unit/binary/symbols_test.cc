// SPDX-License-Identifier: Apache-2.0
#include "binary/symbols.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <map>
#include <set>

#include "base/unique_fd.h"
#include "binary/segments.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

std::map<std::string, uint64_t> DefinedNames(const ElfFile& elf, const SymbolRange& range) {
  std::map<std::string, uint64_t> names;
  SymbolNames reader(elf, range);
  const Result<void> read = ForEachSymbol(elf, range, [&](const Elf64_Sym& symbol) {
    const Result<std::string_view> name = reader.At(symbol.st_name);
    if (name && symbol.st_shndx != SHN_UNDEF) names[std::string(*name)] = symbol.st_value;
  });
  EXPECT_TRUE(read.has_value());
  return names;
}

TEST(Program, IsNoLibrary) {
  for (const char* fixture : {"pie", "non_pie", "static_pie", "stripped"}) {
    EXPECT_TRUE(IsProgram(OpenFixture(fixture))) << fixture;
  }
  EXPECT_FALSE(IsProgram(OpenFixture("shared.so")));
}

TEST(Program, IsNoLibraryThatCanBeRun) {
  Dl_info libc{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::getpid), &libc), 0);
  const UniqueFd fd(::open(libc.dli_fname, O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd) << libc.dli_fname;
  const ElfFile elf = *ElfFile::Open(fd.get());
  EXPECT_NE(elf.header().e_entry, 0U);
  EXPECT_FALSE(IsProgram(elf)) << libc.dli_fname;
}

TEST(Symbols, AreThoseThatNmLists) {
  for (const char* fixture : {"pie", "non_pie", "static_pie", "shared.so"}) {
    const ElfFile elf = OpenFixture(fixture);
    const SymbolRange range = *FindSymbols(*SectionTable::Read(elf), SHT_SYMTAB);
    const auto names = DefinedNames(elf, range);
    for (const NmSymbol& symbol : NmSymbols(fixture)) {
      EXPECT_TRUE(names.contains(symbol.name)) << fixture << " " << symbol.name;
    }
    EXPECT_EQ(names.at("fixture_far"), NmSymbolOf(fixture, "fixture_far").address);
  }
}

TEST(Symbols, AreFoundWithoutSections) {
  for (const char* fixture : {"sysv_hash.so", "gnu_hash.so"}) {
    std::vector<std::byte> image = FixtureBytes(fixture);
    const ElfFile whole = *ElfFile::FromBytes(image);
    const SymbolRange by_section = *FindSymbols(*SectionTable::Read(whole), SHT_DYNSYM);
    RemoveSectionHeaders(image);
    const ElfFile elf = *ElfFile::FromBytes(image);
    const Result<SymbolRange> range = FindDynamicSymbols(elf);
    ASSERT_TRUE(range.has_value()) << fixture << ": " << range.error().message();
    EXPECT_EQ(range->count, by_section.count) << fixture;
    EXPECT_EQ(DefinedNames(elf, *range), DefinedNames(whole, by_section)) << fixture;
  }
}

TEST(Symbols, AreNotFoundInAFileThatIsNotDynamic) {
  std::vector<std::byte> image = FixtureBytes("non_pie");
  ChangeSegmentTypes(image, PT_DYNAMIC, PT_NULL);
  EXPECT_EQ(FindDynamicSymbols(*ElfFile::FromBytes(image)).error().code(), ErrorCode::kNotFound);
}

// The offset in the file of the hash table that DT_GNU_HASH points to.
size_t GnuHashOffset(const std::vector<std::byte>& image) {
  const ElfFile elf = *ElfFile::FromBytes(image);
  for (const Elf64_Phdr& p : elf.program_headers()) {
    if (p.p_type != PT_DYNAMIC) continue;
    for (size_t at = p.p_offset; at < p.p_offset + p.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = Peek<Elf64_Dyn>(image, at);
      if (entry.d_tag != DT_GNU_HASH) continue;
      return ToFileOffset(elf.segments(), ElfAddress(entry.d_un.d_ptr))->value();
    }
  }
  ADD_FAILURE() << "no DT_GNU_HASH";
  return 0;
}

TEST(Symbols, HashTablesThatLieAreRefused) {
  struct Case {
    const char* what;
    std::function<void(std::vector<std::byte>&, size_t)> damage;  // image, hash table
  };
  const Case cases[] = {
      {"endless buckets", [](auto& image, size_t at) { Poke(image, at, uint32_t{0xffffffff}); }},
      {"more buckets than the file holds",
       [](auto& image, size_t at) { Poke(image, at, uint32_t{1} << 20); }},
      {"a bloom filter beyond the end",
       [](auto& image, size_t at) { Poke(image, at + 8, uint32_t{0xffffffff}); }},
      {"chains that never end",
       [](auto& image, size_t at) {
         const auto bloom = Peek<uint32_t>(image, at + 8);
         const auto buckets = Peek<uint32_t>(image, at);
         const size_t chains = at + 16 + size_t{bloom} * 8 + size_t{buckets} * 4;
         for (size_t i = chains; i + 4 <= image.size(); i += 4) Poke(image, i, uint32_t{2});
       }},
  };
  for (const Case& c : cases) {
    std::vector<std::byte> image = FixtureBytes("gnu_hash.so");
    RemoveSectionHeaders(image);
    c.damage(image, GnuHashOffset(image));
    const Result<ElfFile> elf = ElfFile::FromBytes(image);
    ASSERT_TRUE(elf.has_value()) << c.what;
    EXPECT_FALSE(FindDynamicSymbols(*elf).has_value()) << c.what;
  }
}

TEST(Symbols, TablesThatLieAreRefused) {
  struct Case {
    const char* what;
    std::function<void(Elf64_Shdr&)> damage;
  };
  const Case cases[] = {
      {"wrong entry size", [](auto& s) { s.sh_entsize = 16; }},
      {"entries of no size", [](auto& s) { s.sh_entsize = 0; }},
      {"no names", [](auto& s) { s.sh_link = 60000; }},
      {"names from itself", [](auto& s) { s.sh_link = 0; }},
      {"beyond the end", [](auto& s) { s.sh_offset = kHuge - 100; }},
      {"endless", [](auto& s) { s.sh_size = kHuge; }},
      {"more than the file holds", [](auto& s) { s.sh_size = uint64_t{1} << 28; }},
      {"compressed", [](auto& s) { s.sh_flags |= SHF_COMPRESSED; }},
  };
  for (const Case& c : cases) {
    std::vector<std::byte> image = FixtureBytes("pie");
    const auto header = Peek<Elf64_Ehdr>(image, 0);
    size_t at = header.e_shoff;
    while (Peek<Elf64_Shdr>(image, at).sh_type != SHT_SYMTAB) at += sizeof(Elf64_Shdr);
    auto section = Peek<Elf64_Shdr>(image, at);
    c.damage(section);
    Poke(image, at, section);
    const ElfFile elf = *ElfFile::FromBytes(image);
    const Result<SymbolRange> range = FindSymbols(*SectionTable::Read(elf), SHT_SYMTAB);
    const bool refused = !range || !ForEachSymbol(elf, *range, [](const Elf64_Sym&) {});
    EXPECT_TRUE(refused) << c.what;
  }
}

TEST(SymbolNames, EndWithTheirTable) {
  const ElfFile elf = OpenFixture("pie");
  SymbolRange range = *FindSymbols(*SectionTable::Read(elf), SHT_SYMTAB);
  range.names_size = 0;
  EXPECT_EQ(*SymbolNames(elf, range).At(0), "");
}

TEST(SymbolNames, StayInsideTheirTable) {
  const ElfFile elf = OpenFixture("pie");
  const SymbolRange range = *FindSymbols(*SectionTable::Read(elf), SHT_SYMTAB);
  SymbolNames names(elf, range);
  EXPECT_TRUE(names.At(static_cast<uint32_t>(range.names_size - 1)).has_value());
  EXPECT_FALSE(names.At(static_cast<uint32_t>(range.names_size + 1)).has_value());
  EXPECT_FALSE(names.At(0xffffffff).has_value());
}

}  // namespace
}  // namespace pyrometer
