// SPDX-License-Identifier: Apache-2.0
#include "profile/text.h"

#include <gtest/gtest.h>

#include <string>

namespace pyrometer {
namespace {

constexpr std::string_view kMark = "\xEF\xBF\xBD";

std::string Marks(size_t n) {
  std::string marks;
  while (n-- > 0) marks += kMark;
  return marks;
}

TEST(CleanText, KeepsWhatCanBeShown) {
  for (const std::string_view text :
       {"", "plain", "operator<<(std::ostream&)", "gr\xC3\xBC\xC3\x9F", "\xE6\x97\xA5\xE6\x9C\xAC",
        "\xF0\x9F\x94\xA5", "\xF4\x8F\xBF\xBF", "\xC2\xA0"}) {
    EXPECT_TRUE(IsClean(text)) << text;
    EXPECT_EQ(CleanText(text), text);
  }
}

TEST(CleanText, MarksEachByteOfMalformedUtf8) {
  const struct {
    std::string_view text;
    size_t marks;
  } kCases[] = {
      {"\xFF", 1},
      {"\x80", 1},              // a continuation without a lead
      {"\xC3", 1},              // ends early
      {"\xE6\x97", 2},          // ends early
      {"\xC0\xAF", 2},          // overlong '/'
      {"\xE0\x80\xAF", 3},      // overlong
      {"\xF0\x80\x80\xAF", 4},  // overlong
      {"\xED\xA0\x80", 3},      // a surrogate
      {"\xF4\x90\x80\x80", 4},  // beyond U+10FFFF
      {"\xF8\x88\x80\x80", 4},  // no lead byte
  };
  for (const auto& [text, marks] : kCases) {
    EXPECT_FALSE(IsClean(text));
    EXPECT_EQ(CleanText(text), Marks(marks));
  }
}

TEST(CleanText, GoesOnBehindAMalformedByte) {
  EXPECT_EQ(CleanText("a\xE6z\xC3\xBC"), "a" + Marks(1) + "z\xC3\xBC");
}

TEST(CleanText, MarksCharactersThatSteerATerminalOrBreakALine) {
  for (const std::string_view text :
       {std::string_view("\0", 1), std::string_view("\n"), std::string_view("\r"),
        std::string_view("\t"), std::string_view("\x1b"), std::string_view("\x7f"),
        std::string_view("\xC2\x9B"),      // CSI in C1
        std::string_view("\xE2\x80\xA8"),  // line separator
        std::string_view("\xE2\x80\xAE"),  // right-to-left override
        std::string_view("\xE2\x81\xA6")}) {
    EXPECT_FALSE(IsClean(text));
    EXPECT_EQ(CleanText(text), kMark);
  }
}

TEST(Shorten, KeepsBothEndsWithinTheWidth) {
  EXPECT_EQ(Shorten("short", 5), "short");
  EXPECT_EQ(Shorten("abcdefghij", 7), "abcd\xE2\x80\xA6ij");
  EXPECT_EQ(Shorten("abc", 1), "\xE2\x80\xA6");
  EXPECT_EQ(Shorten("abc", 0), "");
}

TEST(Shorten, CutsBetweenCharacters) {
  const std::string text = "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F\xC3\xA9";
  EXPECT_EQ(CodePoints(text), 5);
  EXPECT_EQ(Shorten(text, 4), "\xC3\xA4\xC3\xB6\xE2\x80\xA6\xC3\xA9");
}

TEST(WithThousands, GroupsDigits) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1'000), "1,000");
  EXPECT_EQ(WithThousands(1'234'567), "1,234,567");
  EXPECT_EQ(WithThousands(18'446'744'073'709'551'615U), "18,446,744,073,709,551,615");
}

TEST(BaseName, IsWhatFollowsTheLastSlash) {
  EXPECT_EQ(BaseName("/usr/lib/libc.so.6"), "libc.so.6");
  EXPECT_EQ(BaseName("[vdso]"), "[vdso]");
  EXPECT_EQ(BaseName("//anon"), "anon");
  EXPECT_EQ(BaseName("/"), "/");
}

TEST(CutMarker, NamesTheReasonAndIsEmptyForAWholeStack) {
  EXPECT_EQ(CutMarker(StackEnd::kTruncated), "[truncated]");
  EXPECT_EQ(CutMarker(StackEnd::kNoUnwindInfo), "[unwind stopped: no unwind information]");
  EXPECT_EQ(CutMarker(StackEnd::kComplete), "");
  EXPECT_EQ(CutMarker(StackEnd::kNoUserStack), "");
}

}  // namespace
}  // namespace pyrometer
