// SPDX-License-Identifier: Apache-2.0
#include "base/file_hash.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <span>
#include <string>

namespace pyrometer {
namespace {

// Byte `i` is 7 * i, cut to eight bits.
std::string Content(size_t size) {
  std::string content(size, '\0');
  for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(7 * i);
  return content;
}

std::string HashedByUs(const std::string& content) {
  const auto bytes = std::as_bytes(std::span(content));
  const size_t part = std::min(content.size(), kHashedPart);
  return HashOf(bytes.first(part), bytes.last(part), content.size()).ToHex();
}

// Word for word what the convention says, by the library's other interface.
std::string HashedByTheConvention(const std::string& content) {
  std::string input = content.substr(0, 4096);
  input += content.size() > 4096 ? content.substr(content.size() - 4096) : content;
  for (int shift = 56; shift >= 0; shift -= 8) {
    input += static_cast<char>(static_cast<uint64_t>(content.size()) >> shift);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EXPECT_EQ(EVP_Digest(input.data(), input.size(), digest.data(), &size, EVP_sha256(), nullptr), 1);
  return HexOf(std::as_bytes(std::span(digest)).first(16));
}

TEST(FileHash, IsThatOfTheConvention) {
  for (const size_t size : {0, 1, 63, 64, 4095, 4096, 4097, 8191, 8192, 8193, 100'000, 1 << 20}) {
    EXPECT_EQ(HashedByUs(Content(size)), HashedByTheConvention(Content(size))) << size;
  }
}

TEST(FileHash, IsWhatAnotherImplementationComputes) {
  // Python's: hashlib.sha256(d[:4096] + d[-4096:] + len(d).to_bytes(8, "big")).hexdigest()[:32]
  EXPECT_EQ(HashedByUs("hello"), "b2c90e0c61910efa8c079b70039694de");
  EXPECT_EQ(HashedByUs(Content(10'000)), "6e7a367790a0963a1dcd7ad1eaa9e8c3");
}

TEST(FileHash, DiffersWhereEitherEndOrTheSizeDoes) {
  const std::string content = Content(10'000);
  std::string other = content;
  other.front() ^= 1;
  EXPECT_NE(HashedByUs(content), HashedByUs(other));
  other = content;
  other.back() ^= 1;
  EXPECT_NE(HashedByUs(content), HashedByUs(other));
  EXPECT_NE(HashedByUs(std::string(10'000, 'x')), HashedByUs(std::string(10'001, 'x')));
}

TEST(FileHash, IsEmptyUntilItIsKnown) {
  EXPECT_TRUE(FileHash().empty());
  EXPECT_EQ(FileHash().ToHex(), "");
}

}  // namespace
}  // namespace pyrometer
