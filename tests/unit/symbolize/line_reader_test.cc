// SPDX-License-Identifier: Apache-2.0
#include "symbolize/line_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {
namespace {

constexpr uint64_t kNoEnd = uint64_t{1} << 40;

std::vector<std::string> Lines(std::string_view text, size_t longest, uint64_t begin = 0,
                               uint64_t end = kNoEnd) {
  const UniqueFd fd = TextFile(text);
  LineReader reader(fd.get(), begin, end, longest);
  std::vector<std::string> lines;
  while (const auto line = *reader.Next()) lines.emplace_back(*line);
  return lines;
}

using Texts = std::vector<std::string>;

TEST(LineReader, GivesLinesFromAnOffsetOn) {
  EXPECT_EQ(Lines("a\n\nbc\n", 10), (Texts{"a", "", "bc"}));
  EXPECT_EQ(Lines("a\n\nbc\n", 10, 2), (Texts{"", "bc"}));
  EXPECT_EQ(Lines("", 10), Texts{});
  EXPECT_EQ(Lines("a\n", 10, 100), Texts{});
}

TEST(LineReader, ReadsNothingBeyondItsEnd) {
  EXPECT_EQ(Lines("a\nbc\nd\n", 10, 0, 5), (Texts{"a", "bc"}));
  EXPECT_EQ(Lines("a\nbc\nd\n", 10, 0, 4), (Texts{"a"}));
  EXPECT_EQ(Lines("a\n", 10, 5, 2), Texts{});
}

TEST(LineReader, LeavesAnUnfinishedLine) {
  const UniqueFd fd = TextFile("one\ntw");
  LineReader reader(fd.get(), 0, kNoEnd, 10);
  EXPECT_EQ(*reader.Next(), "one");
  EXPECT_EQ(*reader.Next(), std::nullopt);
  EXPECT_EQ(reader.offset(), 4U);
  EXPECT_EQ(reader.rest(), "tw");
}

TEST(LineReader, CutsLongLinesAndSkipsTheirRest) {
  EXPECT_EQ(Lines("0123456789\nabc\n", 10), (Texts{"0123456789", "abc"}));
  EXPECT_EQ(Lines("0123456789x\nabc\n", 10), (Texts{"0123456789", "abc"}));
  EXPECT_EQ(Lines(std::string(300'000, 'x') + "\nabc\n", 10), (Texts{"xxxxxxxxxx", "abc"}));
  EXPECT_EQ(Lines(std::string(300'000, 'x'), 10), (Texts{"xxxxxxxxxx"}));
}

TEST(LineReader, GivesLinesAcrossItsSteps) {
  std::string text;
  Texts expected;
  for (int i = 0; i < 30'000; ++i) {
    expected.push_back("line " + std::to_string(i));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(Lines(text, 100), expected);
}

}  // namespace
}  // namespace pyrometer
