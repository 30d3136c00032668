// SPDX-License-Identifier: Apache-2.0
#include "config/frequency.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

TEST(ParseFrequency, ReadsTheWholeRange) {
  EXPECT_EQ(ParseFrequency("1")->value, 1U);
  EXPECT_EQ(ParseFrequency("99")->value, 99U);
  EXPECT_EQ(ParseFrequency("10000")->value, 10'000U);
}

TEST(ParseFrequency, RefusesWhatIsOutsideOrNoNumber) {
  for (const char* text : {"0", "10001", "100000", "-1", "4294967395", "99999999999999999999", "",
                           "99.5", "1e3", "99Hz", "abc"}) {
    const Result<Hertz> frequency = ParseFrequency(text);
    ASSERT_FALSE(frequency.has_value()) << text;
    EXPECT_EQ(frequency.error().code(), ErrorCode::kInvalid) << text;
    EXPECT_NE(frequency.error().message().find("1 to 10000"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace pyrometer
