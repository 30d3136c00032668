// SPDX-License-Identifier: Apache-2.0
#include "symbolize/printable.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

TEST(Printable, KeepsTextAndReplacesTheRest) {
  using std::string_literals::operator""s;
  struct Case {
    std::string bytes;
    std::string text;
  };
  const Case cases[] = {
      {"", ""},
      {"std::vector<int>", "std::vector<int>"},
      {"სადილი \u00e9 \U0001F525", "სადილი \u00e9 \U0001F525"},
      {"a\tb\nc\x7f", "a\uFFFDb\uFFFDc\uFFFD"},
      {"nul\0end"s, "nul\uFFFDend"},
      {"\u0085\u2028\u202e\u2066\ufeff", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xff\xfe", "\uFFFD\uFFFD"},
      {"\x80", "\uFFFD"},
      {"cut \xe2\x82", "cut \uFFFD\uFFFD"},
      {"overlong \xc0\xaf", "overlong \uFFFD\uFFFD"},
      {"overlong \xe0\x80\xaf", "overlong \uFFFD\uFFFD\uFFFD"},
      {"surrogate \xed\xa0\x80", "surrogate \uFFFD\uFFFD\uFFFD"},
      {"beyond \xf4\x90\x80\x80", "beyond \uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xe2(\xa1", "\uFFFD(\uFFFD"},
  };
  for (const Case& c : cases) EXPECT_EQ(Printable(c.bytes, 100), c.text);
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(Printable("0123456789", 10), "0123456789");
  EXPECT_EQ(Printable("0123456789a", 10), "0123456...");
  EXPECT_EQ(Printable("01234\u00e9\u00e9\u00e9", 10), "01234\u00e9...");
  EXPECT_EQ(Printable("012345\u00e9\u00e9\u00e9", 10), "012345...");
  EXPECT_EQ(Printable(std::string(100, '\xff'), 10), "\uFFFD\uFFFD...");
}

}  // namespace
}  // namespace pyrometer
