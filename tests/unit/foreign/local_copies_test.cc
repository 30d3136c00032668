// SPDX-License-Identifier: Apache-2.0
#include "foreign/local_copies.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace pyrometer {
namespace {

TEST(LocalCopies, TakeNoMoreThanTheyMay) {
  LocalCopies copies({.directories = {}, .most_in_memory = 100});
  Result<UniqueFd> one = copies.Make(60);
  ASSERT_TRUE(one.has_value());
  const Result<UniqueFd> two = copies.Make(50);
  ASSERT_FALSE(two.has_value());
  EXPECT_EQ(two.error().code(), ErrorCode::kExhausted);
  EXPECT_TRUE(copies.Make(40).has_value());
  EXPECT_EQ(copies.bytes(), 60U);  // the last one is closed again
}

TEST(LocalCopies, CountUntilTheLastDuplicateIsClosed) {
  LocalCopies copies({.directories = {}, .most_in_memory = 100});
  Result<UniqueFd> copy = copies.Make(100);
  ASSERT_TRUE(copy.has_value());
  UniqueFd duplicate(::dup(copy->get()));
  copy->Reset();
  EXPECT_FALSE(copies.Make(1).has_value());
  duplicate.Reset();
  EXPECT_TRUE(copies.Make(100).has_value());
}

TEST(LocalCopies, LeaveRoomOnTheDisk) {
  LocalCopies copies({.left_on_disk = uint64_t{1} << 62});
  const Result<UniqueFd> copy = copies.Make(1);
  if (copy) GTEST_SKIP() << "no local disk can be written here";
  EXPECT_EQ(copy.error().code(), ErrorCode::kExhausted);
}

}  // namespace
}  // namespace pyrometer
