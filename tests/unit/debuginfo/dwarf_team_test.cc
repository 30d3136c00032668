// SPDX-License-Identifier: Apache-2.0
// Two threads tell a sink the same as one does.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/helper_thread.h"
#include "binary/sections.h"
#include "tests/unit/debuginfo/dwarf_fixtures.h"

namespace pyrometer {
namespace {

// All that a sink is told, in words.
class Transcript : public SourceSink {
 public:
  explicit Transcript(size_t most = ~size_t{0}) : most_(most) {}

  Text AddName(std::string_view name) override { return Add(std::string(name)); }
  Text AddPath(std::string_view directory, std::string_view file) override {
    return Add(std::string(directory).append("|").append(file));
  }
  void AddScope(const Scope& scope) override {
    std::string& text = scopes.emplace_back(std::to_string(scope.depth));
    text +=
        " " + At(scope.name) + " " + At(scope.call_file) + ":" + std::to_string(scope.call_line);
    for (const Range& range : scope.ranges) {
      text += " " + std::to_string(range.begin) + "-" + std::to_string(range.end);
    }
  }
  void AddSequence(std::span<const Row> rows, uint64_t end) override {
    std::string& text = sequences.emplace_back();
    for (const Row& row : rows) {
      text +=
          std::to_string(row.address) + " " + At(row.file) + ":" + std::to_string(row.line) + " ";
    }
    text += std::to_string(end);
  }
  bool is_full() const override { return scopes.size() >= most_; }

  bool operator==(const Transcript& other) const {
    return texts == other.texts && scopes == other.scopes && sequences == other.sequences;
  }

  std::vector<std::string> texts;
  std::vector<std::string> scopes;
  std::vector<std::string> sequences;

 private:
  Text Add(std::string text) {
    texts.push_back(std::move(text));
    return static_cast<Text>(texts.size() - 1);
  }
  std::string At(Text text) const { return text == kUnknown ? "?" : texts.at(text); }

  const size_t most_;
};

std::string InWords(const Result<DwarfCounts>& counts) {
  if (!counts) return counts.error().message();
  std::string words;
  for (const uint64_t number :
       {counts->units, counts->missing, counts->functions, counts->inlined_calls, counts->rows,
        counts->malformed, counts->unsupported, uint64_t{counts->is_cut}}) {
    words += std::to_string(number) + " ";
  }
  return words;
}

class DwarfTeamOf : public testing::TestWithParam<const char*> {
 protected:
  // In parts of this size; the smallest is a unit.
  std::string Read(const ElfFile& elf, uint64_t part, Transcript& transcript) {
    return InWords(ReadDwarf({.object = elf}, {.helper = helper_.get(), .part = part}, transcript));
  }

  const std::unique_ptr<HelperThread> helper_ = *HelperThread::Start();
};

TEST_P(DwarfTeamOf, TellsWhatOneThreadTells) {
  const ElfFile elf = OpenFixture(GetParam());
  Transcript alone;
  const Result<DwarfCounts> counts = ReadDwarf({.object = elf}, {}, alone);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->malformed, 0U);
  EXPECT_GE(counts->functions, 17U);
  EXPECT_GE(counts->inlined_calls, 16U);
  for (const uint64_t part : {1, 200, 1000}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      Transcript both;
      ASSERT_EQ(Read(elf, part, both), InWords(counts)) << part;
      ASSERT_TRUE(both == alone) << part;
    }
  }
}

// Whichever byte is wrong.
TEST_P(DwarfTeamOf, TellsTheSameOfDamagedFiles) {
  const std::vector<std::byte> image = FixtureBytes(GetParam());
  const ElfFile whole = *ElfFile::FromBytes(image);
  const SectionTable table = *SectionTable::Read(whole);
  for (const Section& section : table.all()) {
    if (!section.name.starts_with(".debug_")) continue;
    const uint64_t step = section.header.sh_size / 40 + 1;
    for (uint64_t at = 0; at < section.header.sh_size; at += step) {
      std::vector<std::byte> damaged = image;
      damaged[section.header.sh_offset + at] ^= std::byte{0xff};
      const ElfFile elf = *ElfFile::FromBytes(std::move(damaged));
      Transcript alone;
      Transcript both;
      const std::string counts = InWords(ReadDwarf({.object = elf}, {}, alone));
      ASSERT_EQ(Read(elf, 1, both), counts) << section.name << " " << at;
      ASSERT_TRUE(both == alone) << section.name << " " << at;
    }
  }
}

TEST_P(DwarfTeamOf, TellsNothingAfterTheUnitThatIsTooMuch) {
  const ElfFile elf = OpenFixture(GetParam());
  for (const size_t most : {0, 1, 5, 20}) {
    Transcript alone(most);
    Transcript both(most);
    const Result<DwarfCounts> counts = ReadDwarf({.object = elf}, {}, alone);
    ASSERT_TRUE(counts && counts->is_cut);
    Read(elf, 1, both);
    EXPECT_LE(both.scopes.size(), alone.scopes.size() + 8) << most;
    EXPECT_GE(both.scopes.size(), std::min(most, alone.scopes.size())) << most;
  }
}

INSTANTIATE_TEST_SUITE_P(EachKind, DwarfTeamOf, testing::Values("many", "many_zlib", "many_lto"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace pyrometer
