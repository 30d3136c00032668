// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_status.h"

#include <gtest/gtest.h>

#include <utility>

namespace pyrometer {
namespace {

TEST(ExitStatus, FollowsTheContract) {
  const std::pair<ErrorCode, int> contract[] = {
      {ErrorCode::kInternal, 1},
      {ErrorCode::kNotFound, 1},
      {ErrorCode::kMalformed, 1},
      {ErrorCode::kIo, 1},
      {ErrorCode::kExhausted, 1},
      {ErrorCode::kInvalid, 2},
      {ErrorCode::kPermission, 3},
      {ErrorCode::kUnsupported, 3},
      {ErrorCode::kCommandNotExecutable, 126},
      {ErrorCode::kCommandNotFound, 127},
  };
  for (const auto& [code, status] : contract) EXPECT_EQ(ExitStatus(code), status);
}

}  // namespace
}  // namespace pyrometer
