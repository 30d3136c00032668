// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

TEST(IsIdentifierTest, TakesLettersDigitsAndUnderscores) {
  EXPECT_TRUE(IsIdentifier("service_name"));
  EXPECT_TRUE(IsIdentifier("_9Az"));
  EXPECT_FALSE(IsIdentifier(""));
  EXPECT_FALSE(IsIdentifier("9a"));
  EXPECT_FALSE(IsIdentifier("a-b"));
  EXPECT_FALSE(IsIdentifier("\xc3\xa4"));
}

}  // namespace
}  // namespace pyrometer
