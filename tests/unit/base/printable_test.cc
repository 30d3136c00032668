// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace pyrometer {
namespace {

TEST(Printable, KeepsWhatCanBeShown) {
  for (const std::string_view text :
       {"", "operator<<(std::ostream&)", "std::vector<int>", "\u00a0gr\u00fc\u00df", "სადილი",
        "\u65e5\u672c", "\U0001F525", "\uFDCF\uFDF0\uFFFD", "\U0010FFFD"}) {
    EXPECT_TRUE(IsPrintable(text)) << text;
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, ReplacesCharactersThatSteerATerminalOrAReader) {
  for (const std::string_view text :
       {std::string_view("\0", 1),     std::string_view("\n"),     std::string_view("\r"),
        std::string_view("\t"),        std::string_view("\x1b"),   std::string_view("\x7f"),
        std::string_view("\u0085"),    std::string_view("\u009b"),  // C1: next line, CSI
        std::string_view("\u061c"),    std::string_view("\u200e"), std::string_view("\u200f"),
        std::string_view("\u2028"),    std::string_view("\u2029"), std::string_view("\u202a"),
        std::string_view("\u202e"),    std::string_view("\u2066"), std::string_view("\u2069"),
        std::string_view("\ufeff"),    std::string_view("\ufdd0"), std::string_view("\ufdef"),
        std::string_view("\ufffe"),    std::string_view("\uffff"), std::string_view("\U0001fffe"),
        std::string_view("\U0010ffff")}) {
    EXPECT_FALSE(IsPrintable(text)) << text;
    EXPECT_EQ(Printable(text), "\uFFFD");
  }
}

TEST(Printable, ReplacesEachByteOfMalformedUtf8) {
  const struct {
    std::string_view bytes;
    std::string_view text;
  } kCases[] = {
      {"\xff\xfe", "\uFFFD\uFFFD"},
      {"\x80", "\uFFFD"},                                // a continuation without a lead
      {"cut \xc3", "cut \uFFFD"},                        // ends early
      {"cut \xe2\x82", "cut \uFFFD\uFFFD"},              // ends early
      {"\xc0\xaf", "\uFFFD\uFFFD"},                      // overlong '/'
      {"\xe0\x80\xaf", "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xf0\x80\x80\xaf", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // overlong
      {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},            // a surrogate
      {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // beyond U+10FFFF
      {"\xf8\x88\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // no lead byte
      {"\xe2(\xa1", "\uFFFD(\uFFFD"},
      {"a\xe6z\xc3\xbc", "a\uFFFDz\u00fc"},  // goes on behind it
  };
  for (const auto& [bytes, text] : kCases) {
    EXPECT_FALSE(IsPrintable(bytes));
    EXPECT_EQ(Printable(bytes), text);
  }
}

TEST(Printable, MakesWhatIsPrintable) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_FALSE(IsPrintable(all));
  EXPECT_TRUE(IsPrintable(Printable(all)));
  EXPECT_EQ(Printable(Printable(all)), Printable(all));
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(Printable("0123456789", 10), "0123456789");
  EXPECT_EQ(Printable("0123456789a", 10), "0123456...");
  EXPECT_EQ(Printable("01234\u00e9\u00e9\u00e9", 10), "01234\u00e9...");
  EXPECT_EQ(Printable("012345\u00e9\u00e9\u00e9", 10), "012345...");
  EXPECT_EQ(Printable(std::string(100, '\xff'), 10), "\uFFFD\uFFFD...");
}

TEST(EscapeHtml, LeavesNothingThatHtmlWouldRead) {
  EXPECT_EQ(EscapeHtml("<a href=\"x\" id='y'>&</a> \u00e9"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;&lt;/a&gt; \u00e9");
}

}  // namespace
}  // namespace pyrometer
