// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf_functions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "binary/segments.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr size_t kMostInflated = size_t{1} << 20;

struct Opened {
  // `shared`: of the alternate file, if there is one.
  explicit Opened(std::vector<std::byte> image, std::vector<std::byte> shared = {})
      : elf(*ElfFile::FromBytes(std::move(image))), sections(*SectionTable::Read(elf)) {
    if (!shared.empty()) alternate = *ElfFile::FromShared(MemoryBytes(std::move(shared)));
  }

  Result<DwarfFunctions> Functions(size_t most_inflated = kMostInflated) const {
    const auto is_code = [this](ElfAddress address) {
      return ExecutableSegmentAt(elf.segments(), address) != nullptr;
    };
    const ElfFile* const with = alternate ? &*alternate : nullptr;
    return DwarfFunctions::Open({.elf = &elf, .sections = &sections, .alternate = with}, is_code,
                                most_inflated);
  }

  ElfFile elf;
  SectionTable sections;
  std::optional<ElfFile> alternate;
};

// What files share with others, and these files before they shared it.
struct Shared {
  std::string own;
  std::string alternate;
  std::string before;
};
const Shared kShared[] = {{"shared_4.so", "shared_4.debug", "lines_4.so"},
                          {"shared_5.so", "shared_5.debug", "lines_5.so"},
                          {"shared_standard.so", "shared_standard.debug", "lines_5.so"}};

std::string FileOf(const DwarfFunctions& functions, const DwarfPlace& place) {
  const std::string path = place.file ? functions.PathOf(*place.file) : "";
  return std::filesystem::path(path).filename().string();
}

// What is known of a function: "file:line" of each row, with the calls around it.
struct Told {
  bool is_function = false;
  uint32_t start_line = 0;
  std::set<std::string> rows;

  bool operator==(const Told&) const = default;
};

std::map<uint64_t, Told> FunctionsOf(const Opened& opened) {
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
    const auto all = FunctionsOf(Opened(FixtureBytes(fixture)));
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
  const auto all = FunctionsOf(Opened(FixtureBytes("lines_assembly.so")));
  const auto labelled = all.find(NmSymbolOf("lines_assembly.so", "labelled").address);
  ASSERT_NE(labelled, all.end());
  EXPECT_FALSE(labelled->second.is_function);
  EXPECT_EQ(labelled->second.rows, (std::set<std::string>{"labelled.S:6", "labelled.S:7"}));
}

// Of what was inlined. What a compiler made of the name of a template is left out.
std::set<std::string> NamesIn(const Opened& opened) {
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
  return names;
}

TEST(DwarfFunctions, NameMembersWithTheirScopes) {
  const std::set<std::string> names = NamesIn(Opened(FixtureBytes("members.so")));
  EXPECT_TRUE(names.contains("outer::Call"));
  EXPECT_TRUE(names.contains("outer::Holder"));
  EXPECT_TRUE(names.contains("(anonymous namespace)::Counter::Add"));
  EXPECT_TRUE(names.contains("caller::{lambda}::operator()") || names.contains("caller::"))
      << "of a lambda some compilers have a name";
}

TEST(DwarfFunctions, TellWhatLiesInAnAlternateFile) {
  for (const auto& [own, alternate, before] : kShared) {
    SCOPED_TRACE(own);
    const auto all = FunctionsOf(Opened(FixtureBytes(own), FixtureBytes(alternate)));
    EXPECT_EQ(all, FunctionsOf(Opened(FixtureBytes(before))));
    EXPECT_NE(all, FunctionsOf(Opened(FixtureBytes(own)))) << "nothing lies there";
  }
}

TEST(DwarfFunctions, NameMembersWithTheirScopesInAnAlternateFile) {
  const Opened scopes(FixtureBytes("shared_scopes.so"), FixtureBytes("shared_scopes.debug"));
  EXPECT_EQ(NamesIn(scopes),
            (std::set<std::string>{"outer::inner::call_first", "outer::inner::call_second"}));
  EXPECT_EQ(NamesIn(Opened(FixtureBytes("shared_scopes.so"))), std::set<std::string>{""});
  // Where there are nothing but strings.
  const Opened members(FixtureBytes("shared_members.so"), FixtureBytes("shared_members.debug"));
  EXPECT_EQ(NamesIn(members), NamesIn(Opened(FixtureBytes("members.so"))));
}

// What the file says of inlined functions with all that it says of names left out.
std::map<uint64_t, Told> WithoutNames(std::map<uint64_t, Told> all) {
  for (auto& [begin, told] : all) {
    std::set<std::string> rows;
    for (const std::string& row : told.rows) {
      rows.insert(std::regex_replace(row, std::regex(" [^ ]*\\([0-9]+\\) from"), " (0) from"));
    }
    told.rows = rows;
  }
  return all;
}

TEST(DwarfFunctions, LackTheNamesInAnAlternateFileThatIsNotAtHand) {
  for (const auto& [own, alternate, before] : kShared) {
    SCOPED_TRACE(own);
    const auto without = FunctionsOf(Opened(FixtureBytes(own)));
    EXPECT_EQ(without, WithoutNames(FunctionsOf(Opened(FixtureBytes(before)))));
    // Nor if nothing can be found in it.
    EXPECT_EQ(without, FunctionsOf(Opened(FixtureBytes(own), FixtureBytes("stripped"))));
    std::vector<std::byte> short_one = FixtureBytes(alternate);
    SetSection(short_one, ".debug_info", std::vector<std::byte>(5));
    EXPECT_EQ(without, FunctionsOf(Opened(FixtureBytes(own), short_one)));
  }
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

// Whatever refers to the alternate file finds an entry there that refers to one that refers to
// itself, twice.
TEST(DwarfFunctions, EndWhereEntriesReferToThemselves) {
  // Code 0x20: DW_TAG_subprogram, without or with entries below it; DW_AT_abstract_origin and
  // DW_AT_specification, DW_FORM_ref1. All bytes of the unit behind its head are 0x20.
  for (const unsigned has_children : {0U, 1U}) {
    const unsigned table[] = {0x20, 0x2e, has_children, 0x31, 0x11, 0x47, 0x11, 0, 0, 0};
    std::vector<std::byte> shared = FixtureBytes("shared_5.debug");
    const SectionTable sections = *SectionTable::Read(*ElfFile::FromShared(MemoryBytes(shared)));
    const Elf64_Shdr& abbreviations = sections.Find(".debug_abbrev")->header;
    ASSERT_GE(abbreviations.sh_size, std::size(table));
    for (size_t i = 0; i < std::size(table); ++i) {
      shared[abbreviations.sh_offset + i] = static_cast<std::byte>(table[i]);
    }
    const Elf64_Shdr& info = sections.Find(".debug_info")->header;
    constexpr size_t kHead = 12;
    ASSERT_GT(info.sh_size, 0x20U + 3);
    for (size_t i = kHead; i < info.sh_size; ++i) shared[info.sh_offset + i] = std::byte{0x20};
    EXPECT_EQ(FunctionsOf(Opened(FixtureBytes("shared_5.so"), shared)),
              WithoutNames(FunctionsOf(Opened(FixtureBytes("lines_5.so")))));
  }
}

// Reads all, as far as it goes.
void ReadDamaged(const std::vector<std::byte>& image, const std::vector<std::byte>& shared = {}) {
  const Opened opened(image, shared);
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

// Calls `visit` with `image` with each byte of its debug information changed in several ways.
void ForEachDamage(const std::vector<std::byte>& image,
                   const std::function<void(const std::vector<std::byte>&)>& visit) {
  const SectionTable sections = *SectionTable::Read(*ElfFile::FromShared(MemoryBytes(image)));
  for (const Section& section : sections.all()) {
    if (!section.name.starts_with(".debug_") || section.name.ends_with("str")) continue;
    for (uint64_t at = 0; at < section.header.sh_size; ++at) {
      for (const unsigned change : {0xffU, 0x01U, 0x80U}) {
        std::vector<std::byte> damaged = image;
        damaged[section.header.sh_offset + at] ^= static_cast<std::byte>(change);
        visit(damaged);
      }
    }
  }
}

TEST(DwarfFunctions, AreReadWithinBoundsWithAnyByteChanged) {
  for (const char* fixture : {"lines_4.so", "lines_5.so"}) {
    ForEachDamage(FixtureBytes(fixture), [](const auto& damaged) { ReadDamaged(damaged); });
  }
}

TEST(DwarfFunctions, AreReadWithinBoundsWithAnyByteOfAnAlternateFileChanged) {
  for (const std::string name : {"shared_4", "shared_5", "shared_standard", "shared_scopes"}) {
    const std::vector<std::byte> own = FixtureBytes(name + ".so");
    const std::vector<std::byte> shared = FixtureBytes(name + ".debug");
    ForEachDamage(own, [&](const auto& damaged) {
      ReadDamaged(damaged, shared);
      ReadDamaged(damaged, damaged);
    });
    ForEachDamage(shared, [&](const auto& damaged) { ReadDamaged(own, damaged); });
  }
}

}  // namespace
}  // namespace pyrometer
