// SPDX-License-Identifier: Apache-2.0
#include "profiler/debug_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "foreign/direct_foreign_files.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

constexpr std::array<std::byte, 3> kIdBytes = {std::byte{0xab}, std::byte{0xcd}, std::byte{0xef}};
constexpr const char* kPlace = "usr/lib/debug/.build-id/ab/cdef.debug";

// A file's whole content is its build id.
class ContentIndexer : public Indexer {
 public:
  Result<ObjectFacts> Inspect(int fd) override {
    ASSIGN_OR_RETURN(const std::string content, ReadAll(fd, 100));
    return ObjectFacts{.build_id = BuildId(std::as_bytes(std::span(content))), .segments = {}};
  }
  Result<Made<SymbolTable>> Symbols(const FilesToRead&, const SymbolTableOptions&) override {
    return Fail(ErrorCode::kUnsupported, "no symbols");
  }
  Result<Made<UnwindTable>> Unwind(const FilesToRead&, const UnwindTableOptions&) override {
    return Fail(ErrorCode::kUnsupported, "no table");
  }
  Result<std::vector<std::byte>> ReadCode(int, uint64_t) override {
    return Fail(ErrorCode::kUnsupported, "no code");
  }
  Result<std::optional<PerfMapFunction>> PerfMapLines(int, const PerfMapPart&,
                                                      std::chrono::nanoseconds,
                                                      PerfMapSink) override {
    return Fail(ErrorCode::kUnsupported, "no perf map");
  }
  Result<bool> Repeats(const FilesToRead&, const Reading&) override { return false; }
};

class DebugFilesTest : public testing::Test {
 protected:
  DebugFilesTest() {
    for (const char* name : {"container", "host"}) tree_.Directory(name);
  }

  // The path in the tree of what is found, or "nothing".
  std::string Found() {
    std::vector<UniqueFd> roots;
    for (const char* name : {"container", "host"}) {
      roots.push_back(*Open(tree_.Path(name), O_PATH | O_DIRECTORY));
    }
    DebugFiles files({.indexer = indexer_,
                      .files = std::make_shared<DirectForeignFiles>(),
                      .workers = workers_,
                      .clock = clock_});
    std::promise<std::shared_ptr<const UniqueFd>> found;
    files.Find(
        ObjectId(3), std::move(roots), object_,
        [&found](std::shared_ptr<const UniqueFd> file) { found.set_value(std::move(file)); });
    const std::shared_ptr<const UniqueFd> file = found.get_future().get();
    if (file == nullptr) return "nothing";
    const std::string link = "/proc/self/fd/" + std::to_string(file->get());
    return std::filesystem::read_symlink(link).string().substr(tree_.Path().size());
  }
  static std::string In(const std::string& root) { return root + "/" + kPlace; }

  const std::string content_{"\xab\xcd\xef"};
  TemporaryTree tree_;
  FakeClock clock_;
  QuestionThreads workers_{clock_};
  std::shared_ptr<Indexer> indexer_ = std::make_shared<ContentIndexer>();
  DebugFileCriteria object_{.build_id = BuildId(kIdBytes), .user = ::geteuid()};
};

TEST_F(DebugFilesTest, AreFoundInTheFirstRootThatHasThem) {
  EXPECT_EQ(Found(), "nothing");
  tree_.File(In("host"), content_);
  EXPECT_EQ(Found(), In("host"));
  tree_.File(In("container"), content_);
  EXPECT_EQ(Found(), In("container"));
}

TEST_F(DebugFilesTest, HaveTheBuildIdOfTheObject) {
  tree_.File(In("container"), "\xab\xcd\xee");
  EXPECT_EQ(Found(), "nothing");
  tree_.File(In("host"), content_);
  EXPECT_EQ(Found(), In("host")) << "and looks further";
}

TEST_F(DebugFilesTest, MayBeLinksWithinTheRoot) {
  tree_.File("container/usr/lib/debug/program.debug", content_);
  tree_.Link(In("container"), "/usr/lib/debug/program.debug");
  EXPECT_EQ(Found(), "container/usr/lib/debug/program.debug");
}

TEST_F(DebugFilesTest, AreNoLinksOutOfTheRoot) {
  tree_.File("elsewhere", content_);
  tree_.Link(In("container"), tree_.Path("elsewhere"));
  tree_.Link(In("host"), "../../../../../../../elsewhere");
  EXPECT_EQ(Found(), "nothing");
}

TEST_F(DebugFilesTest, AreRegularFiles) {
  tree_.Directory("container/usr/lib/debug/.build-id/ab");
  ASSERT_EQ(::mkfifo(tree_.Path(In("container")).c_str(), 0600), 0);
  tree_.Directory(In("host"));
  EXPECT_EQ(Found(), "nothing") << "and does not wait for anybody";
}

TEST_F(DebugFilesTest, BelongToRootOrToTheObjectsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  constexpr uint32_t kUser = 1234;
  tree_.File(In("container"), content_);
  ASSERT_EQ(::chown(tree_.Path(In("container")).c_str(), kUser, kUser), 0);
  EXPECT_EQ(Found(), "nothing") << "the object is root's";
  object_.user = kUser;
  EXPECT_EQ(Found(), In("container"));
  ASSERT_EQ(::chown(tree_.Path(In("container")).c_str(), 0, 0), 0);
  EXPECT_EQ(Found(), In("container"));
}

TEST_F(DebugFilesTest, AreNotThereWithoutABuildId) {
  object_.build_id = BuildId();
  EXPECT_EQ(Found(), "nothing");
}

}  // namespace
}  // namespace pyrometer
