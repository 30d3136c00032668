// SPDX-License-Identifier: Apache-2.0
// Whatever is done to an ELF file, reading its symbols ends, within memory in proportion to the
// file, and gives either symbols or an error that says so. Run under the sanitizers as well.
#include <gtest/gtest.h>

#include "binary/sections.h"
#include "symbolize/elf_symbols.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr const char* kFixtures[] = {"pie", "gnu_hash.so", "mini_debug", "calls_stripped.so"};
// Decompressing again and again would take minutes under the sanitizers.
constexpr const char* kPlainFixtures[] = {"pie", "gnu_hash.so", "calls_stripped.so"};

void ExpectBounded(const std::vector<std::byte>& image, const std::string& what) {
  const Result<ElfFile> elf = ElfFile::FromBytes(image);
  if (!elf) {
    EXPECT_NE(elf.error().code(), ErrorCode::kInternal) << what;
    return;
  }
  const Result<SymbolTable> table = ReadSymbolTable(*elf);
  if (!table) {
    EXPECT_NE(table.error().code(), ErrorCode::kInternal) << what;
    return;
  }
  // A name is at most the distance to the next NUL, and a symbol is 24 bytes of the file.
  EXPECT_LE(table->size(), image.size() * 16 / sizeof(Elf64_Sym)) << what;
  for (uint64_t address = 0; address < 0x4000; address += 64) {
    const std::optional<Symbol> symbol = table->Find(ElfAddress(address));
    if (!symbol) continue;
    EXPECT_LE(symbol->start, ElfAddress(address)) << what;
    EXPECT_GT(symbol->start.value() + symbol->size, address) << what;
    EXPECT_FALSE(symbol->name.empty()) << what;
  }
}

TEST(DamagedElf, CutAnywhereIsReadWithinBounds) {
  for (const char* fixture : kFixtures) {
    const std::vector<std::byte> image = FixtureBytes(fixture);
    for (size_t size = 0; size < image.size(); size += size < 1024 ? 1 : 97) {
      ExpectBounded({image.begin(), image.begin() + static_cast<ptrdiff_t>(size)},
                    std::string(fixture) + " cut to " + std::to_string(size));
    }
  }
}

void ExpectBoundedWithBytesOf(const std::vector<std::byte>& image, size_t begin, size_t end,
                              const std::string& what) {
  for (size_t at = begin; at < std::min(end, image.size()); ++at) {
    std::vector<std::byte> damaged = image;
    damaged[at] = ~damaged[at];
    ExpectBounded(damaged, what + " byte " + std::to_string(at));
  }
}

TEST(DamagedElf, WithAnyHeaderByteChangedIsReadWithinBounds) {
  for (const char* fixture : kPlainFixtures) {
    const std::vector<std::byte> image = FixtureBytes(fixture);
    const auto header = Peek<Elf64_Ehdr>(image, 0);
    ExpectBoundedWithBytesOf(image, 0, header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr),
                             fixture);
    // The sections that matter are the last ones.
    ExpectBoundedWithBytesOf(image, image.size() - 4 * sizeof(Elf64_Shdr), image.size(), fixture);
  }
}

TEST(DamagedElf, WithEverySymbolOverlappingIsReadWithinBounds) {
  std::vector<std::byte> image = FixtureBytes("pie");
  const ElfFile elf = *ElfFile::FromBytes(image);
  const Elf64_Shdr table = SectionTable::Read(elf)->FindType(SHT_SYMTAB)->header;
  const uint64_t main = NmSymbolOf("pie", "main").address;
  for (uint64_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
    const size_t at = table.sh_offset + i * sizeof(Elf64_Sym);
    auto symbol = Peek<Elf64_Sym>(image, at);
    symbol.st_value = main + i % 7;
    symbol.st_size = ~uint64_t{0} - i;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    Poke(image, at, symbol);
  }
  ExpectBounded(image, "overlapping");
  const Result<SymbolTable> symbols = ReadSymbolTable(*ElfFile::FromBytes(image));
  EXPECT_TRUE(symbols->Find(ElfAddress(main)).has_value());
}

}  // namespace
}  // namespace pyrometer
