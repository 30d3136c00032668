// SPDX-License-Identifier: Apache-2.0
#include "config/duration.h"

#include <gtest/gtest.h>

#include <utility>

namespace pyrometer {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

TEST(ParseDuration, ReadsNumbersWithUnits) {
  const std::pair<const char*, nanoseconds> cases[] = {
      {"10s", 10s},     {"1m30s", 90s},           {"500ms", 500ms}, {"1h", 1h},   {"1.5s", 1500ms},
      {"250us", 250us}, {"1h1m1s1ms", 3661001ms}, {"8784h", 8784h}, {"7d", 168h}, {"1d12h", 36h},
      {"0.5d", 12h},    {"366d", 8784h},
  };
  for (const auto& [text, expected] : cases) {
    const Result<nanoseconds> duration = ParseDuration(text);
    ASSERT_TRUE(duration.has_value()) << text;
    EXPECT_EQ(*duration, expected) << text;
  }
}

TEST(ParseDuration, RefusesWhatIsNone) {
  for (const char* text : {"",     "10",   "s",   "-1s",   "+1s",  " 1s",         "1s ",  "10 s",
                           "1x",   "1s2",  "inf", "0x10s", "1e3s", "ten seconds", "d",    "-1d",
                           "1h2d", "1d2d", "1 d", "1dd",   "nand", "infd",        "1d-1h"}) {
    const Result<nanoseconds> duration = ParseDuration(text);
    ASSERT_FALSE(duration.has_value()) << text;
    EXPECT_EQ(duration.error().code(), ErrorCode::kInvalid) << text;
    EXPECT_NE(duration.error().message().find("10s, 1m30s or 500ms"), std::string::npos) << text;
  }
}

TEST(ParseDuration, RefusesNoTimeAtAll) {
  for (const char* text : {"0s", "0h0m", "0.1ns"}) {
    const Result<nanoseconds> duration = ParseDuration(text);
    ASSERT_FALSE(duration.has_value()) << text;
    EXPECT_NE(duration.error().message().find("too short"), std::string::npos) << text;
  }
}

TEST(ParseDuration, RefusesMoreThanTheLongest) {
  for (const char* text : {"8784h1ns", "367d", "99999999999999999999d", "9223372036854775807h",
                           "99999999999999999999999999s"}) {
    EXPECT_FALSE(ParseDuration(text).has_value()) << text;
  }
}

TEST(FormatDuration, PrintsWhatParseDurationReads) {
  const std::pair<nanoseconds, const char*> cases[] = {
      {10s, "10s"}, {90s, "1m30s"}, {500ms, "500ms"}, {1h, "1h"}, {1500ms, "1.5s"}};
  for (const auto& [duration, expected] : cases) {
    EXPECT_EQ(FormatDuration(duration), expected);
    EXPECT_EQ(*ParseDuration(expected), duration);
  }
}

}  // namespace
}  // namespace pyrometer
