// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cpu_list.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;

TEST(ParseCpuList, ReadsRangesAndSingles) {
  EXPECT_THAT(*ParseCpuList("0-2,5\n"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(*ParseCpuList("3"), ElementsAre(3));
  EXPECT_THAT(*ParseCpuList("\n"), ElementsAre());
}

TEST(ParseCpuList, RefusesWhatIsNoList) {
  for (const char* text : {"x", "1-", "-1", "3-1", "1-2-3", "0-99999999999", "70000"}) {
    EXPECT_FALSE(ParseCpuList(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace pyrometer
