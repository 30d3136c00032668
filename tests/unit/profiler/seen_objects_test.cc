// SPDX-License-Identifier: Apache-2.0
#include "profiler/seen_objects.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "base/direct_foreign_files.h"
#include "base/file.h"
#include "binary/debug_file.h"
#include "indexer/in_process_indexer.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

constexpr ObjectId kObject{7};

FileHash SomeHash() {
  const std::array<std::byte, FileHash::kSize> bytes{std::byte{1}};
  return FileHash(bytes);
}

class SeenObjectsTest : public testing::Test {
 protected:
  SeenObjectsTest() {
    tree_.Directory("proc/1/root");
    own_ = std::make_shared<const UniqueFd>(*Open("/proc/self/exe", O_RDONLY));
    info_.build_id = indexer_->Inspect(own_->get())->build_id;
    info_.tells_names = true;
  }

  void SetUp() override {
    if (info_.build_id.empty()) GTEST_SKIP() << "this program has no build id";
  }
  void See(ObjectId object = kObject) {
    ResolvedWindow window;
    window.objects[object] = {std::make_shared<const ObjectInfo>(info_), own_};
    seen_.Add(window);
  }
  ObjectFile Find() { return seen_.FindNames(info_.build_id, info_.hash, std::stop_token()); }
  static bool IsSameFile(const ObjectFile& file, const std::string& path) {
    return file != nullptr &&
           std::filesystem::equivalent("/proc/self/fd/" + std::to_string(file->get()), path);
  }

  TemporaryTree tree_;
  FakeClock clock_;
  FakeProcesses processes_;
  FileWorkers workers_;
  std::shared_ptr<Indexer> indexer_ = std::make_shared<InProcessIndexer>();
  DebugFiles debug_files_{{.indexer = indexer_,
                           .files = std::make_shared<DirectForeignFiles>(),
                           .workers = workers_,
                           .clock = clock_}};
  SeenObjects seen_{
      {.processes = processes_, .debug_files = debug_files_, .procfs = tree_.AsProcfs()}};
  ObjectFile own_;
  ObjectInfo info_;
};

TEST_F(SeenObjectsTest, GiveTheObjectsOwnFileIfItHasNames) {
  EXPECT_EQ(Find(), nullptr) << "not seen yet";
  See();
  EXPECT_TRUE(IsSameFile(Find(), "/proc/self/exe"));
}

TEST_F(SeenObjectsTest, GiveNothingIfNoFileHasNames) {
  info_.tells_names = false;
  See();
  EXPECT_EQ(Find(), nullptr);
}

TEST_F(SeenObjectsTest, GiveTheDebugFileIfThereIsOne) {
  info_.tells_names = false;
  See();
  const std::string path = tree_.Path("proc/1/root/" + DebugFilePath(info_.build_id));
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::filesystem::copy_file("/proc/self/exe", path);
  EXPECT_TRUE(IsSameFile(Find(), path));
}

TEST_F(SeenObjectsTest, LookForNoDebugFileByAHash) {
  info_.build_id = BuildId();
  info_.hash = SomeHash();
  See();
  EXPECT_TRUE(IsSameFile(Find(), "/proc/self/exe"));
  EXPECT_EQ(seen_.FindNames(BuildId(), FileHash(), std::stop_token()), nullptr);
}

TEST_F(SeenObjectsTest, KeepNoFileOpen) {
  See();
  const std::weak_ptr<const UniqueFd> file = own_;
  own_.reset();
  EXPECT_TRUE(file.expired());
  EXPECT_EQ(Find(), nullptr);
  own_ = std::make_shared<const UniqueFd>(*Open("/proc/self/exe", O_RDONLY));
  See(ObjectId(8));
  EXPECT_EQ(Find(), own_) << "another object of that content counts now";
}

TEST_F(SeenObjectsTest, CountTheFirstOfThoseThatHaveOneBuildId) {
  See();
  const ObjectFile first = own_;
  own_ = std::make_shared<const UniqueFd>(*Open("/dev/null", O_RDONLY));
  See(ObjectId(8));
  EXPECT_EQ(Find(), first);
}

}  // namespace
}  // namespace pyrometer
