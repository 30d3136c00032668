// SPDX-License-Identifier: Apache-2.0
#include "config/event.h"

#include <gtest/gtest.h>

#include <string>

namespace pyrometer {
namespace {

TEST(ParseEvent, ReadsEveryEventByItsName) {
  EXPECT_EQ(*ParseEvent("cpu-clock"), EventKind::kCpuClock);
  EXPECT_EQ(*ParseEvent("page-faults"), EventKind::kPageFaults);
  for (size_t i = 0; i < kEventKinds; ++i) {
    EXPECT_EQ(*ParseEvent(kEvents[i].name), static_cast<EventKind>(i));
  }
}

TEST(ParseEvent, NamesTheEventsThereAre) {
  for (const char* text : {"", "page-fault", "faults", "CPU-CLOCK", "cpu-clock "}) {
    const Result<EventKind> event = ParseEvent(text);
    ASSERT_FALSE(event.has_value()) << text;
    EXPECT_EQ(event.error().code(), ErrorCode::kInvalid) << text;
    EXPECT_NE(event.error().message().find("choose cpu-clock or page-faults"), std::string::npos);
  }
}

TEST(ParseEventPeriod, ReadsTheWholeRange) {
  EXPECT_EQ(*ParseEventPeriod("1"), 1U);
  EXPECT_EQ(*ParseEventPeriod("1000000000"), kLongestEventPeriod);
}

TEST(ParseEventPeriod, RefusesWhatIsOutsideOrNoNumber) {
  for (const char* text :
       {"0", "1000000001", "-1", "+1", "18446744073709551617", "", "1.5", "1e3", "10 ", "ten"}) {
    const Result<uint64_t> period = ParseEventPeriod(text);
    ASSERT_FALSE(period.has_value()) << text;
    EXPECT_EQ(period.error().code(), ErrorCode::kInvalid) << text;
    EXPECT_NE(period.error().message().find("1 to 1000000000"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace pyrometer
