// SPDX-License-Identifier: Apache-2.0
// What is read of a Go program against what its own runtime says, and `go tool addr2line`.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "binary/object_facts.h"
#include "debuginfo/go_program.h"
#include "tests/unit/debuginfo/collected_source.h"

namespace pyrometer {
namespace {

using Frame = CollectedSource::Frame;

bool Succeeds(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Split(const std::string& line, char separator) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

// One of the lines that the program prints.
struct Truth {
  int64_t offset = 0;  // from main.main
  Frame frame;
  bool is_inlined = false;
};

Truth ParseTruth(const std::vector<std::string>& words) {
  return {.offset = std::stoll(words.at(1)),
          .frame = {words.at(2), words.at(3), static_cast<uint32_t>(std::stoul(words.at(4)))},
          .is_inlined = words.at(5) == "true"};
}

struct Build {
  std::string name;
  std::string flags = {};
  bool has_cgo = false;
  bool has_sections = true;
  std::string objcopy = {};  // its options, if what was built is changed
};

void PrintTo(const Build& build, std::ostream* out) {
  *out << build.name;
}

// The program frames, built in one of the ways, what was read of it, and what it says of itself.
class GoTruth : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    if (!Succeeds("command -v go >/dev/null")) {
      GTEST_SKIP() << "no go (Debian package golang-go) to build a program with";
    }
    if (GetParam().has_cgo && !Succeeds("command -v gcc >/dev/null")) {
      GTEST_SKIP() << "no gcc, which cgo links with";
    }
    directory_ = std::filesystem::path(testing::TempDir()) /
                 ("go_truth_" + GetParam().name + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    program_ = directory_ / "frames";
    ASSERT_TRUE(
        Succeeds("cd " GO_PROGRAMS
                 "/go_frames && HOME=${HOME-/root} GOTOOLCHAIN=local GOFLAGS= CGO_ENABLED=" +
                 std::string(GetParam().has_cgo ? "1" : "0") + " go build " + GetParam().flags +
                 " -o " + program_));
    if (!GetParam().objcopy.empty()) {
      ASSERT_TRUE(Succeeds("objcopy " + GetParam().objcopy + " " + program_));
    }
    ASSERT_TRUE(Succeeds(program_ + " >" + program_ + ".txt"));
    Read();
  }

  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  void Read() {
    const UniqueFd fd(::open(program_.c_str(), O_RDONLY | O_CLOEXEC));
    Result<ElfFile> elf = ElfFile::Open(fd.get());
    ASSERT_TRUE(elf);
    ASSERT_TRUE(SectionTable::Read(*elf));
    EXPECT_TRUE(FactsOf(*elf).may_tell_sources) << "else nobody would read it";
    const SectionTable sections =
        GetParam().has_sections ? *SectionTable::Read(*elf) : SectionTable();
    const Result<GoCounts> counts = ReadGoProgram(*elf, sections, source_);
    ASSERT_TRUE(counts) << counts.error().message();
    counts_ = *counts;
    EXPECT_TRUE(source_.is_sound());
    const auto anchor = source_.Find("main.main");
    ASSERT_TRUE(anchor);
    anchor_ = *anchor;
  }

  std::vector<Frame> At(int64_t offset) const { return source_.At(anchor_ + offset); }

  std::filesystem::path directory_;
  std::string program_;
  CollectedSource source_;
  GoCounts counts_;
  uint64_t anchor_ = 0;
};

// Between functions the runtime takes what comes before, without a line. There is nothing.
bool IsPadding(const Frame& frame) {
  return frame.line == 0;
}

// The first name of all is none to the runtime.
bool Agree(const Truth& truth, const std::vector<Frame>& frames) {
  if (frames.empty()) return IsPadding(truth.frame);
  Frame innermost = frames.front();
  if (truth.frame.function.empty()) innermost.function.clear();
  return innermost == truth.frame && truth.is_inlined == (frames.size() > 1);
}

TEST_P(GoTruth, AgreesOnEveryAddress) {
  size_t compared = 0;
  size_t inlined = 0;
  size_t wrong = 0;
  for (const std::string& line : LinesOf(program_ + ".txt")) {
    const std::vector<std::string> words = Split(line, '\t');
    if (words.front() != "address") continue;
    const Truth truth = ParseTruth(words);
    const std::vector<Frame> frames = At(truth.offset);
    ++compared;
    if (truth.is_inlined) ++inlined;
    if (Agree(truth, frames)) continue;
    ++wrong;
    ADD_FAILURE() << line << " is "
                  << (frames.empty() ? "nothing" : testing::PrintToString(frames.front()));
  }
  EXPECT_GE(compared, 10'000U);
  EXPECT_GE(inlined, compared / 10);
  EXPECT_EQ(wrong, 0U);
}

TEST_P(GoTruth, AgreesOnTheCallsOnTheStack) {
  std::vector<Truth> frames;
  size_t chains = 0;
  for (const std::string& line : LinesOf(program_ + ".txt")) {
    const std::vector<std::string> words = Split(line, '\t');
    if (words.front() != "frame") continue;
    frames.push_back(ParseTruth(words));
    if (frames.back().is_inlined) continue;
    std::vector<Frame> expected;
    for (const Truth& frame : frames) expected.push_back(frame.frame);
    const std::vector<Frame> told = At(frames.front().offset);
    EXPECT_TRUE(told == expected) << line << ": " << told.size() << " frames, not "
                                  << expected.size();
    if (frames.size() > 1) ++chains;
    frames.clear();
  }
  EXPECT_GE(chains, 10U);
}

// Which is looked up as if a call lay in front of it. Functions begin at multiples of 16.
TEST_P(GoTruth, NamesWhatSignalHandlersReturnTo) {
  const auto begin = source_.Find("runtime.sigreturn__sigaction");
  ASSERT_TRUE(begin);
  EXPECT_EQ(*begin % 16, 15U);
  EXPECT_EQ(source_.At(*begin + 1).front().function, "runtime.sigreturn__sigaction");
}

TEST_P(GoTruth, FindsNothingMalformed) {
  EXPECT_EQ(counts_.malformed_functions, 0U);
  EXPECT_EQ(counts_.unknown_inlines, 0U);
  EXPECT_EQ(counts_.malformed_lines, 0U);
  EXPECT_EQ(counts_.functions, source_.functions());
  EXPECT_EQ(counts_.functions + counts_.inlined_calls, source_.scopes());
}

INSTANTIATE_TEST_SUITE_P(
    Builds, GoTruth,
    testing::Values(Build{.name = "plain", .flags = ""},
                    Build{.name = "stripped", .flags = "-ldflags='-s -w'"},
                    Build{.name = "pie", .flags = "-buildmode=pie"},
                    Build{.name = "stripped_pie", .flags = "-buildmode=pie -ldflags='-s -w'"},
                    Build{.name = "cgo", .flags = "-ldflags=-linkmode=external", .has_cgo = true},
                    Build{.name = "cgo_pie",
                          .flags = "-buildmode=pie -ldflags='-s -w -linkmode=external'",
                          .has_cgo = true},
                    // As ld has merged the table with others, see go_table_search.cc.
                    Build{.name = "merged_pie",
                          .flags = "-buildmode=pie -ldflags='-s -w'",
                          .objcopy = "--rename-section .gopclntab=.data.rel.ro "
                                     "--rename-section .data.rel.ro.gopclntab=.data.rel.ro"},
                    Build{.name = "sectionless", .flags = "", .has_sections = false},
                    Build{.name = "sectionless_pie",
                          .flags = "-buildmode=pie -ldflags='-s -w'",
                          .has_sections = false}),
    [](const testing::TestParamInfo<Build>& tested) { return tested.param.name; });

}  // namespace
}  // namespace pyrometer
