// SPDX-License-Identifier: Apache-2.0
#include "binary/byte_source.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <limits>

#include "base/unique_fd.h"

namespace pyrometer {
namespace {

std::vector<std::byte> Counting(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(ByteSource, RefusesWhatIsNotARegularFile) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  EXPECT_EQ(FileBytes(reader.get()).error().code(), ErrorCode::kInvalid);
}

TEST(ByteSource, FailsWhereAFileWasCutMeanwhile) {
  const UniqueFd fd(::memfd_create("cut", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  const auto source = *FileBytes(fd.get());
  ASSERT_EQ(::ftruncate(fd.get(), 100), 0);
  std::vector<std::byte> out(200);
  EXPECT_EQ(source->Read(0, out).error().code(), ErrorCode::kMalformed);
}

TEST(ReadArray, TakesNoMemoryForMoreThanThereIs) {
  const auto source = MemoryBytes(Counting(100));
  EXPECT_EQ(ReadArray<uint64_t>(*source, 4, 12)->size(), 12U);
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  EXPECT_FALSE(ReadArray<uint64_t>(*source, 5, 12).has_value());
  EXPECT_FALSE(ReadArray<uint64_t>(*source, 0, kHuge).has_value());
  EXPECT_FALSE(ReadArray<uint64_t>(*source, kHuge, 1).has_value());
  EXPECT_FALSE(ReadArray<uint64_t>(*source, 0, kHuge / 8 + 2).has_value());
}

TEST(ReadAhead, GivesTheSameBytesInAnyOrder) {
  const auto source = MemoryBytes(Counting(256));
  ReadAhead bytes(*source, 10, 1000, 16);
  for (const uint64_t offset : {10, 12, 25, 26, 11, 200, 199, 255, 10}) {
    const auto at = bytes.At(offset, 1);
    ASSERT_TRUE(at.has_value());
    EXPECT_EQ((*at)[0], static_cast<std::byte>(offset));
  }
}

TEST(ReadAhead, EndsWithItsRange) {
  const auto source = MemoryBytes(Counting(256));
  ReadAhead bytes(*source, 10, 20, 16);
  EXPECT_EQ(bytes.At(15, 100)->size(), 5U);
  EXPECT_EQ(bytes.At(20, 1)->size(), 0U);
  EXPECT_FALSE(bytes.At(21, 1).has_value());
  EXPECT_FALSE(bytes.At(9, 1).has_value());
}

}  // namespace
}  // namespace pyrometer
