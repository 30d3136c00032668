// SPDX-License-Identifier: Apache-2.0
// The ELF files that the build made for tests, and what nm says of them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "binary/byte_source.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "tests/shared/test_paths.h"

namespace pyrometer {

inline std::string FixturePath(std::string_view name) {
  return BuildPath("tests/unit/binary/fixtures/") + std::string(name);
}

inline std::vector<std::byte> FixtureBytes(std::string_view name) {
  const Result<std::string> text = ReadFile(FixturePath(name));
  EXPECT_TRUE(text.has_value()) << name;
  std::vector<std::byte> bytes(text->size());
  std::memcpy(bytes.data(), text->data(), text->size());
  return bytes;
}

inline ElfFile OpenFixture(std::string_view name) {
  return *ElfFile::FromBytes(FixtureBytes(name));
}

// Reads and writes a structure of an ELF image in place.
template <typename T>
T Peek(const std::vector<std::byte>& image, size_t offset) {
  T value;
  std::memcpy(&value, image.data() + offset, sizeof(value));
  return value;
}
template <typename T>
void Poke(std::vector<std::byte>& image, size_t offset, const T& value) {
  std::memcpy(image.data() + offset, &value, sizeof(value));
}

inline void RemoveSectionHeaders(std::vector<std::byte>& image) {
  auto header = Peek<Elf64_Ehdr>(image, 0);
  header.e_shoff = 0;
  header.e_shnum = 0;
  header.e_shstrndx = 0;
  Poke(image, 0, header);
}

// Gives the image other bytes for a section that it has.
inline void SetSection(std::vector<std::byte>& image, std::string_view name,
                       const std::vector<std::byte>& bytes) {
  const SectionTable sections = *SectionTable::Read(*ElfFile::FromShared(MemoryBytes(image)));
  const Section* const section = sections.Find(name);
  ASSERT_NE(section, nullptr) << name;
  const auto index = static_cast<size_t>(section - sections.all().data());
  Elf64_Shdr header = section->header;
  header.sh_offset = image.size();
  header.sh_size = bytes.size();
  Poke(image, Peek<Elf64_Ehdr>(image, 0).e_shoff + index * sizeof(header), header);
  image.insert(image.end(), bytes.begin(), bytes.end());
}

struct NmSymbol {
  uint64_t address = 0;
  uint64_t size = 0;
  char type = 0;
  std::string name;
};

// The symbols of a fixture that is not stripped.
inline std::vector<NmSymbol> NmSymbols(std::string_view fixture) {
  const Result<std::string> text = ReadFile(FixturePath(std::string(fixture) + ".nm"));
  EXPECT_TRUE(text.has_value()) << fixture;
  std::vector<NmSymbol> symbols;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::vector<std::string> words;
    for (std::string word; fields >> word;) words.push_back(word);
    if (words.size() < 3) continue;
    const bool sized = words.size() == 4;
    symbols.push_back({.address = std::stoull(words[0], nullptr, 16),
                       .size = sized ? std::stoull(words[1], nullptr, 16) : 0,
                       .type = words[words.size() - 2][0],
                       .name = words.back()});
  }
  return symbols;
}

inline NmSymbol NmSymbolOf(std::string_view fixture, std::string_view name) {
  for (const NmSymbol& symbol : NmSymbols(fixture)) {
    if (symbol.name == name) return symbol;
  }
  ADD_FAILURE() << "nm knows no " << name << " in " << fixture;
  return {};
}

}  // namespace pyrometer
