// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

// Bytes 0 to 15.
constexpr KeyedDigest::Key kKey{.low = 0x0706050403020100, .high = 0x0f0e0d0c0b0a0908};

std::vector<std::byte> Counting(size_t size) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(i));
  return bytes;
}

Digest DigestOf(std::span<const std::byte> bytes, const KeyedDigest::Key& key = kKey) {
  KeyedDigest digest(key);
  digest.Add(bytes);
  return digest.Finish();
}

// The first of the test vectors published with SipHash.
TEST(KeyedDigest, IsSipHashOfWhatIsShort) {
  EXPECT_EQ(DigestOf({}), (Digest{0xe6a825ba047f81a3, 0x930255c71472f66d}));
  EXPECT_EQ(DigestOf(Counting(1)), (Digest{0x44af996bd8c187da, 0x45fc229b11597634}));
}

TEST(KeyedDigest, DoesNotDependOnThePiecesThatItGets) {
  for (const size_t size : {size_t{61}, KeyedDigest::kBlock, 3 * KeyedDigest::kBlock + 61}) {
    const std::vector<std::byte> bytes = Counting(size);
    for (const size_t piece : {1U, 3U, 7U, 8U, 9U, 60U, 511U, 512U, 513U, 1025U}) {
      KeyedDigest digest(kKey);
      for (size_t at = 0; at < bytes.size(); at += piece) {
        digest.Add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
      }
      EXPECT_EQ(digest.Finish(), DigestOf(bytes)) << size << " in pieces of " << piece;
    }
  }
}

TEST(KeyedDigest, DiffersWithEveryByteAndWithTheKey) {
  for (const size_t size : {size_t{61}, 2 * KeyedDigest::kBlock + 61}) {
    std::vector<std::byte> bytes = Counting(size);
    const Digest digest = DigestOf(bytes);
    EXPECT_NE(DigestOf(bytes, KeyedDigest::RandomKey()), digest);
    for (std::byte& byte : bytes) {
      byte ^= std::byte{1};
      EXPECT_NE(DigestOf(bytes), digest);
      byte ^= std::byte{1};
    }
  }
}

// Of zeros each has as many words, or more, of which nothing is seen in a sum of products.
TEST(KeyedDigest, DiffersWithTheSize) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (size_t size = 0; size < 3 * KeyedDigest::kBlock; ++size) {
    const Digest digest = DigestOf(std::vector<std::byte>(size));
    EXPECT_TRUE(seen.emplace(digest.low, digest.high).second) << size;
  }
}

// Whole blocks that change places.
TEST(KeyedDigest, DiffersWithTheOrder) {
  std::vector<std::byte> bytes = Counting(2 * KeyedDigest::kBlock);
  bytes[0] = std::byte{7};
  const Digest digest = DigestOf(bytes);
  std::ranges::rotate(bytes, bytes.begin() + KeyedDigest::kBlock);
  EXPECT_NE(DigestOf(bytes), digest);
}

}  // namespace
}  // namespace pyrometer
