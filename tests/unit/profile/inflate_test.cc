// SPDX-License-Identifier: Apache-2.0
#include "profile/inflate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

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

// Up to one size libdeflate packs it and beyond it zlib.
TEST(Inflated, IsWhatWasDeflatedInPieces) {
  for (const size_t size : {Deflater::kSmallStream - 1, Deflater::kSmallStream,
                            Deflater::kSmallStream + 1, 4 * Deflater::kSmallStream}) {
    std::string plain;
    while (plain.size() < size) plain += fmt::format("function_{}\n", plain.size());
    plain.resize(size);
    for (const auto format : {Deflater::Format::kGzip, Deflater::Format::kZlib}) {
      Deflater deflater(format);
      constexpr size_t kPiece = 10'000;
      for (size_t at = 0; at < size; at += kPiece) {
        deflater.Append(std::string_view(plain).substr(at, kPiece));
      }
      const std::string packed = std::move(deflater).Finish();
      EXPECT_LT(packed.size(), size / 2);
      EXPECT_EQ(Inflated(packed, size), plain) << size;
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
