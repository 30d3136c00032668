// SPDX-License-Identifier: Apache-2.0
#include "foreign/reading.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace pyrometer {
namespace {

constexpr std::string_view kText = "0123456789abcdefghijklmnopqrstuvwxyz";

UniqueFd FileOf(std::string_view bytes) {
  UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), bytes).has_value());
  return fd;
}

class ReadingTest : public testing::Test {
 protected:
  // Of the bytes 2 to 5 and 10 to 12 of a file.
  Reading ReadTwoPlaces(int fd) const {
    ReadingRecorder recorder(key_);
    const auto source = *recorder.Open(fd);
    std::array<std::byte, 3> bytes{};
    EXPECT_TRUE(source->Read(2, std::span(bytes).first(2)).has_value());
    EXPECT_TRUE(source->Read(4, std::span(bytes).first(2)).has_value());
    EXPECT_TRUE(source->Read(10, bytes).has_value());
    return std::move(recorder).Finish();
  }
  bool IsRepeatedBy(const Reading& reading, std::string_view bytes) const {
    const UniqueFd file = FileOf(bytes);
    const std::array<int, 1> files = {file.get()};
    return *Repeats(reading, files, key_);
  }

  const KeyedDigest::Key key_ = KeyedDigest::RandomKey();
};

TEST_F(ReadingTest, TellsWhatWasRead) {
  const UniqueFd file = FileOf(kText);
  const Reading reading = ReadTwoPlaces(file.get());
  EXPECT_EQ(reading.sizes, std::vector<uint64_t>{kText.size()});
  ASSERT_EQ(reading.pieces.size(), 2U) << "neighbours are one piece";
  EXPECT_EQ(reading.pieces[0].offset, 2U);
  EXPECT_EQ(reading.pieces[0].size, 4U);
  EXPECT_EQ(reading.pieces[1].offset, 10U);
  EXPECT_TRUE(reading.is_complete);
}

TEST_F(ReadingTest, IsRepeatedByWhateverHasTheSameBytesInThesePlaces) {
  const UniqueFd file = FileOf(kText);
  const Reading reading = ReadTwoPlaces(file.get());
  for (size_t i = 0; i < kText.size(); ++i) {
    std::string other(kText);
    other[i] = '?';
    const bool was_read = (i >= 2 && i < 6) || (i >= 10 && i < 13);
    EXPECT_EQ(IsRepeatedBy(reading, other), !was_read) << i;
  }
}

TEST_F(ReadingTest, IsNotRepeatedByAFileOfAnotherSize) {
  const UniqueFd file = FileOf(kText);
  const Reading reading = ReadTwoPlaces(file.get());
  EXPECT_FALSE(IsRepeatedBy(reading, std::string(kText) + "!"));
  EXPECT_FALSE(IsRepeatedBy(reading, kText.substr(0, 20)));
}

TEST_F(ReadingTest, TellsApartWhichOfTwoFilesWasRead) {
  const UniqueFd a = FileOf("aaaa");
  const UniqueFd b = FileOf("bbbb");
  ReadingRecorder recorder(key_);
  const auto first = *recorder.Open(a.get());
  const auto second = *recorder.Open(b.get());
  std::array<std::byte, 4> bytes{};
  EXPECT_TRUE(second->Read(0, bytes).has_value());
  const Reading reading = std::move(recorder).Finish();
  EXPECT_TRUE(*Repeats(reading, std::array{a.get(), b.get()}, key_));
  EXPECT_FALSE(*Repeats(reading, std::array{b.get(), a.get()}, key_));
  EXPECT_FALSE(*Repeats(reading, std::array{b.get()}, key_));
}

TEST_F(ReadingTest, IsNotCompleteIfAReadFailed) {
  const UniqueFd file = FileOf(kText);
  ReadingRecorder recorder(key_);
  const auto source = *recorder.Open(file.get());
  std::array<std::byte, 4> bytes{};
  EXPECT_FALSE(source->Read(kText.size() - 2, bytes).has_value());
  const Reading reading = std::move(recorder).Finish();
  EXPECT_FALSE(reading.is_complete);
  EXPECT_FALSE(IsRepeatedBy(reading, kText));
}

TEST_F(ReadingTest, IsNotCompleteIfThereAreTooManyPieces) {
  const UniqueFd file = FileOf(kText);
  ReadingRecorder recorder(key_);
  const auto source = *recorder.Open(file.get());
  std::array<std::byte, 1> byte{};
  for (size_t i = 0; i <= ReadingRecorder::kMostPieces; ++i) {
    EXPECT_TRUE(source->Read(i % 2 * 10, byte).has_value());
  }
  EXPECT_FALSE(std::move(recorder).Finish().is_complete);
}

}  // namespace
}  // namespace pyrometer
