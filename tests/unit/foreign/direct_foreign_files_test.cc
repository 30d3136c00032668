// SPDX-License-Identifier: Apache-2.0
#include "foreign/direct_foreign_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "foreign/foreign_file.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

constexpr std::chrono::seconds kAmple(60);

class DirectForeignFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.File("root/lib/a", "content");
    tree_.File("secret", "outside");
    tree_.Link("root/out", "../../secret");
    root_ = UniqueFd(::open(tree_.Path("root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  TemporaryTree tree_;
  UniqueFd root_;
  DirectForeignFiles files_;
};

TEST_F(DirectForeignFilesTest, OpensWhatItHasFound) {
  const Result<UniqueFd> found = files_.LookUp(root_.get(), "/lib/a", 0, {kAmple});
  ASSERT_TRUE(found);
  char byte = 0;
  EXPECT_LT(::read(found->get(), &byte, 1), 0) << "it is not open for reading";
  const Result<OpenedFile> opened = files_.OpenForReading(found->get(), {kAmple});
  ASSERT_TRUE(opened);
  EXPECT_FALSE(opened->is_copy);
  EXPECT_EQ(ReadAll(opened->fd.get(), 100).value_or(""), "content");
}

TEST_F(DirectForeignFilesTest, FindsNothingOutsideOfTheRoot) {
  EXPECT_FALSE(files_.LookUp(root_.get(), "/out", 0, {kAmple}));
  EXPECT_FALSE(files_.LookUp(root_.get(), "/lib/b", 0, {kAmple}));
}

TEST_F(DirectForeignFilesTest, FindsDirectoriesWhereThoseAreWanted) {
  EXPECT_TRUE(files_.LookUp(root_.get(), "/lib", O_DIRECTORY, {kAmple}));
  EXPECT_FALSE(files_.LookUp(root_.get(), "/lib/a", O_DIRECTORY, {kAmple}));
}

TEST_F(DirectForeignFilesTest, FindsAtOnceWhatTheKernelHasInMemory) {
  ASSERT_TRUE(files_.LookUp(root_.get(), "/lib/a", 0, {kAmple}));
  const auto cached = FindCachedInRoot(root_.get(), "/lib/a", 0);
  if (cached) {  // Linux 5.12 or later, and nobody made it forget
    EXPECT_TRUE(cached->has_value());
  }
  const auto missing = FindCachedInRoot(root_.get(), std::string("/l\0", 3), 0);
  ASSERT_TRUE(missing);
  EXPECT_FALSE(missing->has_value());
}

}  // namespace
}  // namespace pyrometer
