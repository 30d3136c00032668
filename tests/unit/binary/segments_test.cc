// SPDX-License-Identifier: Apache-2.0
#include "binary/segments.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

Segment Load(uint64_t offset, uint64_t address, uint64_t size, bool executable) {
  return {.offset = FileOffset(offset),
          .address = ElfAddress(address),
          .file_size = size,
          .memory_size = size + 0x100,
          .executable = executable};
}

// As a linker lays them out that lets segments share pages of the file.
const std::vector<Segment> kSegments = {Load(0, 0, 0x5a0, false), Load(0x5a0, 0x15a0, 0x1000, true),
                                        Load(0x15a0, 0x35a0, 0x200, false),
                                        Load(0x4010, 0x40004010, 0x20, true)};

TEST(Segments, TurnFileOffsetsIntoAddressesOfTheRightSegment) {
  struct Case {
    const char* what;
    uint64_t offset;
    std::optional<uint64_t> address;
  };
  const Case cases[] = {
      {"in the code", 0x600, 0x1600},
      {"in the other code", 0x4018, 0x40004018},
      {"in the page that the code begins in", 0x100, 0x1100},
      {"in the page that the code ends in", 0x1700, 0x2700},
      {"in the page around the other code", 0x4ff0, 0x40004ff0},
      {"beyond everything", 0x9000, std::nullopt},
      {"beyond all numbers", ~uint64_t{0}, std::nullopt},
  };
  for (const Case& c : cases) {
    const std::optional<ElfAddress> address = ToElfAddress(kSegments, FileOffset(c.offset));
    const std::optional<uint64_t> value = address ? std::optional(address->value()) : std::nullopt;
    EXPECT_EQ(value, c.address) << c.what;
  }
}

TEST(Segments, TurnAddressesIntoFileOffsets) {
  EXPECT_EQ(ToFileOffset(kSegments, ElfAddress(0x1600)), FileOffset(0x600));
  EXPECT_EQ(ToFileOffset(kSegments, ElfAddress(0x40004010)), FileOffset(0x4010));
  EXPECT_EQ(ToFileOffset(kSegments, ElfAddress(0x3)), FileOffset(0x3));
  EXPECT_EQ(ToFileOffset(kSegments, ElfAddress(0x37a0)), std::nullopt) << "in .bss";
}

// Where the dynamic linker put `symbol` of a library, by /proc/self/maps.
FileOffset FileOffsetOf(const void* symbol) {
  const Result<std::string> maps = ReadFile("/proc/self/maps");
  std::istringstream lines(*maps);
  const auto address = reinterpret_cast<uint64_t>(symbol);
  for (std::string line; std::getline(lines, line);) {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t offset = 0;
    const int n =
        std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset);
    if (n == 3 && address >= start && address < end) return FileOffset(address - start + offset);
  }
  ADD_FAILURE() << "not mapped";
  return {};
}

TEST(Segments, AgreeWithTheDynamicLinker) {
  void* const library = ::dlopen(FixturePath("shared.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const ElfFile elf = OpenFixture("shared.so");
  for (const char* name : {"fixture_alpha", "fixture_far", "fixture_before_gap"}) {
    const FileOffset offset = FileOffsetOf(::dlsym(library, name));
    const std::optional<ElfAddress> address = ToElfAddress(elf.segments(), offset);
    ASSERT_TRUE(address.has_value()) << name;
    EXPECT_EQ(address->value(), NmSymbolOf("shared.so", name).address) << name;
  }
  ::dlclose(library);
}

}  // namespace
}  // namespace pyrometer
