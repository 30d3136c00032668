// SPDX-License-Identifier: Apache-2.0
#include "profile/inflate.h"

#include <gtest/gtest.h>

#include "profile/deflater.h"

namespace pyrometer {
namespace {

std::string Packed(const std::string& plain, Deflater::Format format = Deflater::Format::kGzip) {
  Deflater deflater(format);
  deflater.Append(plain);
  return std::move(deflater).Finish();
}

TEST(Inflated, IsWhatWasDeflated) {
  for (const auto format : {Deflater::Format::kGzip, Deflater::Format::kZlib}) {
    for (const size_t size : {0, 1, 100'000}) {
      const std::string plain(size, 'p');
      EXPECT_EQ(Inflated(Packed(plain, format), size), plain);
    }
  }
}

TEST(Inflated, RefusesWhatIsNotOneWholeStream) {
  const std::string packed = Packed("some text");
  std::string broken = packed;
  broken[packed.size() / 2] = static_cast<char>(~broken[packed.size() / 2]);
  for (const std::string& bad : {std::string(), std::string("text"), packed + "x", packed + packed,
                                 packed.substr(0, packed.size() - 1), broken}) {
    const Result<std::string> plain = Inflated(bad, 1000);
    ASSERT_FALSE(plain.has_value());
    EXPECT_EQ(plain.error().code(), ErrorCode::kMalformed);
  }
}

TEST(Inflated, StopsAtItsLimit) {
  const std::string bomb = Packed(std::string(size_t{10} << 20, '\0'));
  const Result<std::string> plain = Inflated(bomb, size_t{1} << 20);
  ASSERT_FALSE(plain.has_value());
  EXPECT_EQ(plain.error().code(), ErrorCode::kExhausted);
}

}  // namespace
}  // namespace pyrometer
