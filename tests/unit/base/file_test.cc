// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace pyrometer {
namespace {

std::string TemporaryFile(std::string_view content) {
  std::string path = testing::TempDir() + "/pyrometer_file_XXXXXX";
  const UniqueFd fd(::mkstemp(path.data()));
  EXPECT_TRUE(WriteAll(fd.get(), content).has_value());
  return path;
}

TEST(ReadFile, GivesTheWholeContent) {
  const std::string content(200'000, 'x');
  EXPECT_EQ(*ReadFile(TemporaryFile(content)), content);
}

TEST(ReadFile, RefusesMoreThanTheLimit) {
  const Result<std::string> bytes = ReadFile(TemporaryFile(std::string(100, 'x')), 99);
  ASSERT_FALSE(bytes.has_value());
  EXPECT_EQ(bytes.error().code(), ErrorCode::kExhausted);
}

TEST(ReadFile, NamesTheMissingFile) {
  const Result<std::string> bytes = ReadFile("/nonexistent/file");
  ASSERT_FALSE(bytes.has_value());
  EXPECT_EQ(bytes.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(bytes.error().message(), "/nonexistent/file: No such file or directory");
}

TEST(ReadAt, FailsWhereTheFileEnds) {
  const Result<UniqueFd> fd = Open(TemporaryFile("0123456789"), O_RDONLY);
  ASSERT_TRUE(fd.has_value());
  std::array<std::byte, 4> out{};
  EXPECT_TRUE(ReadAt(fd->get(), 6, out).has_value());
  EXPECT_EQ(std::to_integer<char>(out[3]), '9');
  EXPECT_EQ(ReadAt(fd->get(), 7, out).error().code(), ErrorCode::kMalformed);
  EXPECT_EQ(ReadAt(fd->get(), ~uint64_t{0}, out).error().code(), ErrorCode::kMalformed);
}

}  // namespace
}  // namespace pyrometer
