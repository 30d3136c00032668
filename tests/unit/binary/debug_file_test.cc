// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_file.h"

#include <gtest/gtest.h>

#include <array>

namespace pyrometer {
namespace {

TEST(DebugFilePath, IsMadeOfTheBuildId) {
  constexpr std::array<std::byte, 3> kBytes = {std::byte{0xab}, std::byte{0x01}, std::byte{0xef}};
  EXPECT_EQ(DebugFilePath(BuildId(kBytes)), "/usr/lib/debug/.build-id/ab/01ef.debug");
}

TEST(DebugFilePath, IsEmptyWhereTheBuildIdIsTooShort) {
  constexpr std::array<std::byte, 1> kByte = {std::byte{0xab}};
  EXPECT_EQ(DebugFilePath(BuildId(kByte)), "");
  EXPECT_EQ(DebugFilePath(BuildId()), "");
}

}  // namespace
}  // namespace pyrometer
