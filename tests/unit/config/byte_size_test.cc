// SPDX-License-Identifier: Apache-2.0
#include "config/byte_size.h"

#include <gtest/gtest.h>

#include <utility>

namespace pyrometer {
namespace {

TEST(ParseByteSize, ReadsNumbersWithUnits) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"12B", 12},
      {"64k", uint64_t{64} << 10},
      {"64K", uint64_t{64} << 10},
      {"64KiB", uint64_t{64} << 10},
      {"64kB", 64'000},
      {"512MiB", uint64_t{512} << 20},
      {"512Mi", uint64_t{512} << 20},
      {"512M", uint64_t{512} << 20},
      {"512MB", 512'000'000},
      {"1GiB", uint64_t{1} << 30},
      {"1.5G", uint64_t{3} << 29},
      {"1024TiB", kLargestByteSize},
      {"1TB", 1'000'000'000'000},
      {"1125899906842623", kLargestByteSize - 1},
  };
  for (const auto& [text, expected] : cases) {
    const Result<uint64_t> size = ParseByteSize(text);
    ASSERT_TRUE(size.has_value()) << text;
    EXPECT_EQ(*size, expected) << text;
  }
}

TEST(ParseByteSize, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "MiB",
                           "-1",
                           "+1",
                           " 1",
                           "1 ",
                           "1 MiB",
                           "1mib",
                           "1m",
                           "1PiB",
                           "1x",
                           "1.2.3M",
                           ".",
                           "1e3",
                           "0x10",
                           "inf",
                           "nan",
                           "1025TiB",
                           "18446744073709551616",
                           "99999999999999999999999999T"}) {
    const Result<uint64_t> size = ParseByteSize(text);
    ASSERT_FALSE(size.has_value()) << text;
    EXPECT_EQ(size.error().code(), ErrorCode::kInvalid) << text;
  }
}

TEST(FormatByteSize, PrintsWhatParseByteSizeReads) {
  const std::pair<uint64_t, const char*> cases[] = {{0, "0"},
                                                    {1000, "1000"},
                                                    {1024, "1KiB"},
                                                    {uint64_t{3} << 29, "1536MiB"},
                                                    {uint64_t{1} << 30, "1GiB"},
                                                    {kLargestByteSize, "1024TiB"}};
  for (const auto& [bytes, expected] : cases) {
    EXPECT_EQ(FormatByteSize(bytes), expected);
    EXPECT_EQ(*ParseByteSize(expected), bytes);
  }
}

}  // namespace
}  // namespace pyrometer
