// SPDX-License-Identifier: Apache-2.0
#include "base/spill_file.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::shared_ptr<SpillFile> InMemory(uint64_t most = kMiB) {
  return SpillFile::Open({.directories = {}, .most_in_memory = most}).value_or(nullptr);
}

std::string Content(const SpillFile::Extent& extent, uint64_t offset, size_t size) {
  std::string content(size, '?');
  const bool read = extent.Read(offset, std::as_writable_bytes(std::span(content))).has_value();
  return read ? content : "unreadable";
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(SpillFile, GivesBackWhatItWasGiven) {
  const auto file = InMemory();
  ASSERT_NE(file, nullptr);
  const std::string large(10'000, 'x');
  const auto first = file->Write(BytesOf("first"));
  const auto second = file->Write(BytesOf(large));
  const auto third = file->Write(BytesOf("third"));
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(Content(**first, 0, 5), "first");
  EXPECT_EQ(Content(**second, 9'990, 10), large.substr(0, 10));
  EXPECT_EQ(Content(**third, 2, 3), "ird");
  EXPECT_EQ((*second)->size(), 10'000U);
  EXPECT_EQ(file->bytes(), 5U * 4096);
}

TEST(SpillFile, FreesWhatNobodyHolds) {
  const auto file = InMemory(3 * 4096);
  const std::string two(2 * 4096, 'x');
  auto first = file->Write(BytesOf(two));
  ASSERT_TRUE(first);
  const auto too_much = file->Write(BytesOf(two));
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code(), ErrorCode::kExhausted);
  first->reset();
  EXPECT_EQ(file->bytes(), 0U);
  EXPECT_TRUE(file->Write(BytesOf(two)));
}

TEST(SpillFile, OutlivesItsOwnerWhileSomethingOfItIsHeld) {
  auto file = InMemory();
  const auto extent = file->Write(BytesOf("kept"));
  file.reset();
  EXPECT_EQ(Content(**extent, 0, 4), "kept");
}

TEST(SpillFile, LiesInTheFirstDirectoryOfADiskAndHasNoName) {
  const TemporaryTree tree;
  const auto file = SpillFile::Open(
      {.directories = {tree.Path("absent"), "/proc", tree.Path()}, .left_on_disk = 0});
  ASSERT_TRUE(file.has_value()) << file.error().message();
  struct statfs about {};
  ASSERT_EQ(::statfs(tree.Path().c_str(), &about), 0);
  if (about.f_type == TMPFS_MAGIC) GTEST_SKIP() << tree.Path() << " is on no disk";
  EXPECT_FALSE((*file)->is_in_memory());
  EXPECT_TRUE(std::filesystem::is_empty(tree.Path()));
  const auto extent = (*file)->Write(BytesOf("kept"));
  ASSERT_TRUE(extent) << extent.error().message();
  EXPECT_EQ(Content(**extent, 0, 4), "kept");
  const auto careful = SpillFile::Open({.directories = {tree.Path()}, .left_on_disk = UINT64_MAX});
  EXPECT_EQ((*careful)->Write(BytesOf("kept")).error().code(), ErrorCode::kExhausted);
}

TEST(SpillFile, SaysThatTheDiskIsFullAndKeepsTheRoom) {
  const auto file = InMemory();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto refused = file->Write(BytesOf(std::string(8192, 'x')));
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(refused);
  EXPECT_EQ(file->bytes(), 0U);
  EXPECT_TRUE(file->Write(BytesOf(std::string(8192, 'x'))));
}

}  // namespace
}  // namespace pyrometer
