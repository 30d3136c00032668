// SPDX-License-Identifier: Apache-2.0
#include "profile/text.h"

#include <gtest/gtest.h>

#include <string>

namespace pyrometer {
namespace {

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

TEST(ShortenPath, KeepsTheFileAndItsDirectoryIfTheyFit) {
  EXPECT_EQ(ShortenPath("/usr/lib/go/src/runtime/proc.go", 40), "runtime/proc.go");
  EXPECT_EQ(ShortenPath("/usr/lib/go/src/runtime/proc.go", 15), "runtime/proc.go");
  EXPECT_EQ(ShortenPath("/usr/lib/go/src/runtime/proc.go", 14), "proc.go");
  EXPECT_EQ(ShortenPath("/usr/a-long-name.go", 7), "a-lo\xE2\x80\xA6go");
  EXPECT_EQ(ShortenPath("/a.go", 9), "/a.go");
  EXPECT_EQ(ShortenPath("src/a.go", 9), "src/a.go");
  EXPECT_EQ(ShortenPath("a.go", 9), "a.go");
  EXPECT_EQ(ShortenPath("/", 9), "/");
  EXPECT_EQ(ShortenPath("", 9), "");
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
