// SPDX-License-Identifier: Apache-2.0
#include "config/memory_size.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

TEST(ParseUnwindMemory, ReadsMebibytes) {
  for (const char* text : {"64", "64M", "64MiB"}) {
    EXPECT_EQ(*ParseUnwindMemory(text), size_t{64} << 20) << text;
  }
  EXPECT_EQ(*ParseUnwindMemory("256MiB"), kMostUnwindMemory);
}

TEST(ParseUnwindMemory, RefusesWhatIsOutsideOrNoNumber) {
  for (const char* text : {"", "0", "257", "-1", "64G", "64MB", "MiB", "4294967297", "1.5M"}) {
    const Result<size_t> bytes = ParseUnwindMemory(text);
    ASSERT_FALSE(bytes.has_value()) << text;
    EXPECT_EQ(bytes.error().code(), ErrorCode::kInvalid) << text;
  }
}

}  // namespace
}  // namespace pyrometer
