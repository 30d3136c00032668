// SPDX-License-Identifier: Apache-2.0
#include "base/file_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

class FileIdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.File("file", "one");
    fd_ = UniqueFd(::open(tree_.Path("file").c_str(), O_PATH | O_CLOEXEC));
    const Result<FileIdentity> identity = IdentityOf(fd_.get());
    ASSERT_TRUE(identity);
    identity_ = *identity;
  }

  // Not now: a clock that counts in ticks might show the same time.
  void SetModified(int64_t second) const {
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                               {.tv_sec = second, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, tree_.Path("file").c_str(), times, 0), 0);
  }

  TemporaryTree tree_;
  UniqueFd fd_;
  FileIdentity identity_;
};

TEST_F(FileIdentityTest, IsTheSameForEveryWayToTheFile) {
  const Result<UniqueFd> reading = Open("/proc/self/fd/" + std::to_string(fd_.get()), O_RDONLY);
  ASSERT_TRUE(reading);
  EXPECT_EQ(IdentityOf(reading->get()).value(), identity_);
  EXPECT_TRUE(IsUnchanged(reading->get(), identity_));
}

TEST_F(FileIdentityTest, ChangesWhenTheFileIsWrittenTo) {
  SetModified(1);
  EXPECT_FALSE(IsUnchanged(fd_.get(), identity_));
}

TEST_F(FileIdentityTest, ChangesWithTheSize) {
  std::filesystem::resize_file(tree_.Path("file"), 2);
  EXPECT_FALSE(IsUnchanged(fd_.get(), identity_));
}

TEST_F(FileIdentityTest, StaysWhenTheFileIsDeleted) {
  std::filesystem::remove(tree_.Path("file"));
  EXPECT_TRUE(IsUnchanged(fd_.get(), identity_));
}

TEST_F(FileIdentityTest, TellsAFileThatTookTheNameOfAnother) {
  tree_.File("other", "one");
  std::filesystem::rename(tree_.Path("other"), tree_.Path("file"));
  EXPECT_TRUE(IsUnchanged(fd_.get(), identity_));
  const UniqueFd now(::open(tree_.Path("file").c_str(), O_PATH | O_CLOEXEC));
  EXPECT_FALSE(IsUnchanged(now.get(), identity_));
}

TEST_F(FileIdentityTest, IsOfRegularFilesOnly) {
  ASSERT_EQ(::mkfifo(tree_.Path("fifo").c_str(), 0600), 0);
  const UniqueFd fifo(::open(tree_.Path("fifo").c_str(), O_PATH | O_CLOEXEC));
  const Result<FileIdentity> identity = IdentityOf(fifo.get());
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code(), ErrorCode::kInvalid);
  EXPECT_FALSE(IdentityOf(-1));
}

TEST(MayBeWrittenBetween, GoesByTheChangeAndOfADeletedFileByTheModification) {
  const auto at = [](int64_t ns) {
    return std::chrono::system_clock::time_point(std::chrono::nanoseconds(ns));
  };
  FileIdentity file{.changed_ns = 20, .modified_ns = 10, .links = 1};
  EXPECT_TRUE(MayBeWrittenBetween(file, at(19), at(30))) << "a time of writing can be set";
  EXPECT_FALSE(MayBeWrittenBetween(file, at(20), at(30)));
  EXPECT_FALSE(MayBeWrittenBetween(file, at(15), at(19))) << "of another clock";
  file.links = 0;
  EXPECT_FALSE(MayBeWrittenBetween(file, at(10), at(30)));
  EXPECT_TRUE(MayBeWrittenBetween(file, at(9), at(30)));
}

}  // namespace
}  // namespace pyrometer
