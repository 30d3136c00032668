// SPDX-License-Identifier: Apache-2.0
#include "base/spilled_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace pyrometer {
namespace {

constexpr uint64_t kBlock = SpillFile::kBlock;

std::shared_ptr<SpillFile> FileOf(uint64_t blocks) {
  return *SpillFile::Open({.directories = {}, .most_in_memory = blocks * kBlock});
}

bool Put(SpilledBytes& bytes, std::string_view text) {
  return bytes.Put(std::as_bytes(std::span(text)));
}

std::string Content(const SpilledBytes& bytes, uint64_t offset, size_t size) {
  std::string content(size, '?');
  return bytes.Read(offset, std::as_writable_bytes(std::span(content))) ? content : "unreadable";
}

TEST(SpilledBytes, AreReadAcrossPiecesWhereverTheseAre) {
  SpilledBytes bytes({.file = FileOf(1), .most_in_memory = 3});
  EXPECT_TRUE(Put(bytes, "abc"));
  EXPECT_TRUE(Put(bytes, "def")) << "the file is full";
  EXPECT_EQ(bytes.spilled(), kBlock);
  EXPECT_EQ(bytes.in_memory(), 3U);
  EXPECT_EQ(bytes.size(), 6U);
  EXPECT_EQ(Content(bytes, 0, 6), "abcdef");
  EXPECT_EQ(Content(bytes, 2, 2), "cd");
  EXPECT_EQ(Content(bytes, 6, 0), "");
  EXPECT_EQ(Content(bytes, 5, 2), "unreadable");
}

TEST(SpilledBytes, SayWhatHasNoRoomAndLeaveAGap) {
  SpilledBytes bytes({.file = nullptr, .most_in_memory = 4});
  EXPECT_TRUE(Put(bytes, "ab"));
  EXPECT_FALSE(Put(bytes, "cde"));
  EXPECT_TRUE(Put(bytes, "fg"));
  EXPECT_EQ(Content(bytes, 0, 2), "ab");
  EXPECT_EQ(Content(bytes, 1, 2), "unreadable");
  EXPECT_EQ(Content(bytes, 5, 2), "fg");
}

TEST(SpilledBytes, HaveGapsOfAnySize) {
  SpilledBytes bytes({.file = nullptr, .most_in_memory = 4});
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(Put(bytes, "12345"));
  EXPECT_TRUE(Put(bytes, "ab"));
  EXPECT_FALSE(Put(bytes, "12345"));
  EXPECT_EQ(bytes.size(), 5007U);
  EXPECT_EQ(Content(bytes, 5000, 2), "ab");
  EXPECT_EQ(Content(bytes, 4999, 2), "unreadable");
  EXPECT_EQ(Content(bytes, 5001, 2), "unreadable");
}

TEST(SpilledBytes, TakeNoMoreOfTheFileThanTheyMay) {
  const auto file = FileOf(8);
  SpilledBytes bytes({.file = file, .most_spilled = kBlock});
  EXPECT_TRUE(Put(bytes, "ab"));
  EXPECT_FALSE(Put(bytes, "cd"));
  EXPECT_EQ(file->bytes(), kBlock);
}

TEST(SpilledBytes, StayInMemoryIfTheyAreFew) {
  const auto file = FileOf(8);
  SpilledBytes bytes({.file = file, .kept_in_memory = 4});
  EXPECT_TRUE(Put(bytes, "abcd"));
  EXPECT_EQ(file->bytes(), 0U);
  EXPECT_TRUE(Put(bytes, "e"));
  EXPECT_EQ(file->bytes(), kBlock);
  EXPECT_EQ(Content(bytes, 0, 5), "abcde");
}

}  // namespace
}  // namespace pyrometer
