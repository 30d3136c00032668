// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/download_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/unit/debuginfod/temporary_directory.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMiB = size_t{1} << 20;

class DownloadCacheTest : public testing::Test {
 protected:
  // A file that was last used `age` seconds ago.
  void Add(const std::string& name, std::time_t age, size_t size = kMiB) {
    const fs::path path = fs::path(directory_.path()) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << std::string(size, 'x');
    const timeval when{.tv_sec = std::time(nullptr) - age, .tv_usec = 0};
    const timeval times[] = {when, when};
    ASSERT_EQ(::utimes(path.c_str(), times), 0);
  }
  bool Has(const std::string& name) const { return fs::exists(fs::path(directory_.path()) / name); }

  const TemporaryDirectory directory_;
};

TEST_F(DownloadCacheTest, KeepsWhatWasUsedLast) {
  Add("0a/debuginfo", 300);
  Add("0b/debuginfo", 100);
  Add("0c/debuginfo", 200);
  TrimDownloads(directory_.path(), 2 * kMiB + kMiB / 2);
  EXPECT_FALSE(Has("0a"));
  EXPECT_TRUE(Has("0b/debuginfo"));
  EXPECT_TRUE(Has("0c/debuginfo"));
  TrimDownloads(directory_.path(), kMiB + kMiB / 2);
  EXPECT_TRUE(Has("0b/debuginfo"));
  EXPECT_FALSE(Has("0c"));
}

TEST_F(DownloadCacheTest, ForgetsDownloadsThatWereCutOff) {
  Add("0a/debuginfo.Xy3kQ1", 2 * 3600);
  Add("0b/debuginfo.Ab4kQ2", 60);
  TrimDownloads(directory_.path(), 10 * kMiB);
  EXPECT_FALSE(Has("0a"));
  EXPECT_TRUE(Has("0b/debuginfo.Ab4kQ2")) << "may be under way";
}

TEST_F(DownloadCacheTest, ForgetsWhatNoServerHad) {
  for (const auto& [name, age] : {std::pair("0a/debuginfo", 2 * 3600), {"0b/debuginfo", 60}}) {
    Add(name, age, 0);
  }
  TrimDownloads(directory_.path(), 10 * kMiB);
  EXPECT_FALSE(Has("0a"));
  EXPECT_TRUE(Has("0b/debuginfo"));
}

TEST_F(DownloadCacheTest, FollowsNoLinks) {
  const TemporaryDirectory elsewhere;
  std::ofstream(elsewhere.path() + "/debuginfo") << std::string(kMiB, 'x');
  fs::create_directory_symlink(elsewhere.path(), directory_.path() + "/0a");
  TrimDownloads(directory_.path(), 0);
  EXPECT_TRUE(fs::exists(elsewhere.path() + "/debuginfo"));
}

TEST_F(DownloadCacheTest, OfADirectoryThatIsNotThereHasNothing) {
  TrimDownloads(directory_.path() + "/none", 0);
}

TEST_F(DownloadCacheTest, IsMadeForItsOwnerOnly) {
  const std::string path = directory_.path() + "/one/two";
  ASSERT_TRUE(PrepareDownloadDirectory(path));
  ASSERT_TRUE(PrepareDownloadDirectory(path)) << "again";
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(DownloadCacheTest, IsNotKeptWhereOthersMayWrite) {
  const std::string open = directory_.path() + "/open";
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  const Result<void> prepared = PrepareDownloadDirectory(open);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code(), ErrorCode::kPermission);
  fs::create_directory_symlink(directory_.path(), directory_.path() + "/link");
  EXPECT_FALSE(PrepareDownloadDirectory(directory_.path() + "/link"));
}

}  // namespace
}  // namespace pyrometer
