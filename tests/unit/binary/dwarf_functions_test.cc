// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf_functions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "binary/segments.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr size_t kMostInflated = size_t{1} << 20;

struct Opened {
  explicit Opened(std::vector<std::byte> image)
      : elf(*ElfFile::FromBytes(std::move(image))), sections(*SectionTable::Read(elf)) {}

  Result<DwarfFunctions> Functions(size_t most_inflated = kMostInflated) const {
    const auto is_code = [this](ElfAddress address) {
      return ExecutableSegmentAt(elf.segments(), address) != nullptr;
    };
    return DwarfFunctions::Open(elf, sections, is_code, most_inflated);
  }

  ElfFile elf;
  SectionTable sections;
};

std::string FileOf(const DwarfFunctions& functions, const DwarfPlace& place) {
  const std::string path = place.file ? functions.PathOf(*place.file) : "";
  return std::filesystem::path(path).filename().string();
}

// What is known of a function: "file:line" of each row, with the calls around it.
struct Told {
  bool is_function = false;
  uint32_t start_line = 0;
  std::set<std::string> rows;
};

std::map<uint64_t, Told> FunctionsOf(const char* fixture) {
  const Opened opened(FixtureBytes(fixture));
  DwarfFunctions functions = *opened.Functions();
  std::map<uint64_t, Told> all;
  const Result<void> read = functions.ForEach([&](const DwarfCode& code) {
    Told& function = all[code.begin.value()];
    function.is_function = code.is_function;
    function.start_line = code.start_line;
    ElfAddress end = code.begin;
    for (const DwarfRow& row : code.rows) {
      EXPECT_EQ(row.begin, end) << "there is a gap";
      end = row.end;
      std::string text = fmt::format("{}:{}", FileOf(functions, row.place), row.place.line);
      for (std::optional<uint32_t> call = row.inlined; call; call = code.calls[*call].within) {
        const DwarfInlinedCall& of = code.calls[*call];
        text += fmt::format(" {}({}) from {}:{}", functions.NameAt(of.name), of.start_line,
                            FileOf(functions, of.from), of.from.line);
      }
      function.rows.insert(text);
    }
    EXPECT_EQ(end, code.end);
    return true;
  });
  EXPECT_TRUE(read);
  EXPECT_EQ(functions.counts().unreadable, 0U);
  return all;
}

TEST(DwarfFunctions, TellLinesAndInlinedCallsInEveryVersion) {
  for (const char* fixture : {"lines_2.so", "lines_3.so", "lines_4.so", "lines_5.so", "lines_64.so",
                              "lines_compressed.so", "lines_zstd.so"}) {
    SCOPED_TRACE(fixture);
    const auto all = FunctionsOf(fixture);
    const auto outermost = all.find(NmSymbolOf(fixture, "outermost").address);
    ASSERT_NE(outermost, all.end());
    EXPECT_TRUE(outermost->second.is_function);
    EXPECT_EQ(outermost->second.start_line, 30U);
    const std::string middle = " middle(20) from inlined.c:32";
    for (const std::string& row :
         {std::string("inlined.c:31"), std::string("inlined.c:33"), "outer.h:22" + middle,
          "inner.h:11 innermost(10) from outer.h:21" + middle,
          "inner.h:12 innermost(10) from outer.h:21" + middle}) {
      EXPECT_TRUE(outermost->second.rows.contains(row)) << row;
    }
    const auto plain = all.find(NmSymbolOf(fixture, "plain").address);
    ASSERT_NE(plain, all.end());
    EXPECT_EQ(plain->second.start_line, 40U);
    EXPECT_TRUE(plain->second.rows.contains("inlined.c:41"));
  }
}

TEST(DwarfFunctions, TellTheLinesOfCodeThatIsNoFunctions) {
  const auto all = FunctionsOf("lines_assembly.so");
  const auto labelled = all.find(NmSymbolOf("lines_assembly.so", "labelled").address);
  ASSERT_NE(labelled, all.end());
  EXPECT_FALSE(labelled->second.is_function);
  EXPECT_EQ(labelled->second.rows, (std::set<std::string>{"labelled.S:6", "labelled.S:7"}));
}

TEST(DwarfFunctions, NameMembersWithTheirScopes) {
  const Opened opened(FixtureBytes("members.so"));
  DwarfFunctions functions = *opened.Functions();
  std::set<std::string> names;
  std::vector<DwarfName> of_unit;
  const Result<void> read = functions.ForEach(
      [&](const DwarfCode& code) {
        for (const DwarfInlinedCall& call : code.calls) of_unit.push_back(call.name);
        return true;
      },
      [&] {
        for (const DwarfName& name : of_unit) {
          const std::string text = functions.NameAt(name);
          names.insert(text.substr(0, text.find('<')));
        }
      });
  EXPECT_TRUE(read);
  EXPECT_TRUE(names.contains("outer::Call"));
  EXPECT_TRUE(names.contains("outer::Holder"));
  EXPECT_TRUE(names.contains("caller::{lambda}::operator()") || names.contains("caller::"))
      << "of a lambda some compilers have a name";
}

TEST(DwarfFunctions, AreNotThereWithoutDebugInformation) {
  EXPECT_EQ(Opened(FixtureBytes("stripped")).Functions().error().code(), ErrorCode::kNotFound);
}

TEST(DwarfFunctions, InflateNoMoreThanTheyMay) {
  for (const char* fixture : {"lines_compressed.so", "lines_zstd.so"}) {
    const Opened opened(FixtureBytes(fixture));
    EXPECT_EQ(opened.Functions(100).error().code(), ErrorCode::kExhausted) << fixture;
  }
}

TEST(DwarfFunctions, StopWhenNoMoreIsWanted) {
  const Opened opened(FixtureBytes("lines_5.so"));
  DwarfFunctions functions = *opened.Functions();
  int visited = 0;
  EXPECT_TRUE(functions.ForEach([&](const DwarfCode&) { return ++visited < 2; }));
  EXPECT_EQ(visited, 2);
}

// Reads all, as far as it goes.
void ReadDamaged(const std::vector<std::byte>& image) {
  const Opened opened(image);
  Result<DwarfFunctions> functions = opened.Functions();
  if (!functions) return;
  std::vector<DwarfName> names;
  const Result<void> read = functions->ForEach([&](const DwarfCode& code) {
    EXPECT_LT(code.begin, code.end);
    for (size_t i = 0; i < code.calls.size(); ++i) {
      names.push_back(code.calls[i].name);
      EXPECT_TRUE(!code.calls[i].within || *code.calls[i].within < i);
    }
    for (const DwarfRow& row : code.rows) {
      EXPECT_LT(row.begin, row.end);
      EXPECT_TRUE(!row.inlined || *row.inlined < code.calls.size());
      EXPECT_LE(functions->PathOf(row.place.file.value_or(0)).size(), 16384U);
    }
    return names.size() < 10'000;
  });
  EXPECT_TRUE(read || read.error().code() != ErrorCode::kInternal);
  for (const DwarfName& name : names) EXPECT_LE(functions->NameAt(name).size(), 4096U);
}

TEST(DwarfFunctions, AreReadWithinBoundsWithAnyByteChanged) {
  for (const char* fixture : {"lines_4.so", "lines_5.so"}) {
    const std::vector<std::byte> image = FixtureBytes(fixture);
    const Opened whole(image);
    for (const Section& section : whole.sections.all()) {
      if (!section.name.starts_with(".debug_") || section.name.ends_with("str")) continue;
      for (uint64_t at = 0; at < section.header.sh_size; ++at) {
        for (const unsigned change : {0xffU, 0x01U, 0x80U}) {
          std::vector<std::byte> damaged = image;
          damaged[section.header.sh_offset + at] ^= static_cast<std::byte>(change);
          ReadDamaged(damaged);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pyrometer
