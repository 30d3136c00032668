// SPDX-License-Identifier: Apache-2.0
#include "foreign/foreign_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

Result<UniqueFd> OpenInRoot(int root, const std::string& path) {
  ASSIGN_OR_RETURN(const UniqueFd found, FindInRoot(root, path, 0));
  return OpenAgain(found.get());
}

class OpenInRootTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/pyrometer_root_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    fs::create_directories(directory_ / "root/usr");
    Write("secret", "outside");
    Write("root/usr/file", "inside");
    root_ = *Open(directory_ / "root", O_PATH | O_DIRECTORY);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void Write(const std::string& name, std::string_view content) const {
    const UniqueFd fd(::open((directory_ / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    EXPECT_TRUE(WriteAll(fd.get(), content).has_value());
  }
  std::string ContentOf(const std::string& path) const {
    const Result<UniqueFd> fd = OpenInRoot(root_.get(), path);
    return fd ? ReadAll(fd->get(), 100).value_or("unreadable") : "nothing";
  }
  ErrorCode ErrorOf(const std::string& path) const {
    return OpenInRoot(root_.get(), path).error().code();
  }

  fs::path directory_;
  UniqueFd root_;
};

TEST_F(OpenInRootTest, OpensAFile) {
  EXPECT_EQ(ContentOf("/usr/file"), "inside");
  EXPECT_EQ(ErrorOf("/usr/other"), ErrorCode::kNotFound);
}

TEST_F(OpenInRootTest, FollowsLinksWithinTheRoot) {
  fs::create_symlink("/usr", directory_ / "root/absolute");
  fs::create_symlink("file", directory_ / "root/usr/relative");
  EXPECT_EQ(ContentOf("/absolute/relative"), "inside");
}

TEST_F(OpenInRootTest, NeverLeavesTheRoot) {
  fs::create_symlink("../../secret", directory_ / "root/usr/up");
  fs::create_symlink(directory_ / "secret", directory_ / "root/usr/out");
  for (const char* path : {"/../secret", "/usr/up", "/usr/out"}) {
    EXPECT_EQ(ErrorOf(path), ErrorCode::kNotFound) << path;
  }
}

TEST_F(OpenInRootTest, OpensNothingButRegularFiles) {
  ASSERT_EQ(::mkfifo((directory_ / "root/fifo").c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf("/fifo"), ErrorCode::kInvalid) << "and does not wait for its writer";
  EXPECT_EQ(ErrorOf("/usr"), ErrorCode::kInvalid);
}

TEST_F(OpenInRootTest, FollowsNoMagicLink) {
  const UniqueFd root = *Open("/", O_PATH | O_DIRECTORY);
  EXPECT_FALSE(OpenInRoot(root.get(), "/proc/self/exe").has_value());
}

TEST_F(OpenInRootTest, OpensAFileAgainThatIsDeletedMeanwhile) {
  const UniqueFd path(::open((directory_ / "secret").c_str(), O_PATH | O_CLOEXEC));
  fs::remove(directory_ / "secret");
  const Result<UniqueFd> reading = OpenAgain(path.get());
  ASSERT_TRUE(reading) << reading.error().message();
  EXPECT_EQ(ReadAll(reading->get(), 100).value_or(""), "outside");
}

TEST(OpenAgain, OpensNoDevice) {
  const UniqueFd null(::open("/dev/null", O_PATH | O_CLOEXEC));
  EXPECT_FALSE(OpenAgain(null.get()));
}

}  // namespace
}  // namespace pyrometer
