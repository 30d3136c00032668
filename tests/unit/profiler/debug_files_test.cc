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
#include "tests/shared/eventually.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

constexpr std::array<std::byte, 3> kIdBytes = {std::byte{0xab}, std::byte{0xcd}, std::byte{0xef}};
constexpr const char* kPlace = "usr/lib/debug/.build-id/ab/cdef.debug";

// A file's whole content is its build id, unless it begins with "-"; its size is its checksum.
class ContentIndexer : public Indexer {
 public:
  static Result<std::string> ContentOf(int fd) {
    ::lseek(fd, 0, SEEK_SET);
    return ReadAll(fd, 100);
  }
  Result<ObjectFacts> Inspect(int fd) override {
    ASSIGN_OR_RETURN(const std::string content, ContentOf(fd));
    ObjectFacts facts;
    if (!content.empty()) facts.segments.emplace_back();
    if (!content.starts_with('-')) facts.build_id = BuildId(std::as_bytes(std::span(content)));
    return facts;
  }
  Result<DebugLinks> Links(int fd) override {
    ASSIGN_OR_RETURN(const std::string content, ContentOf(fd));
    if (fails) return Fail(ErrorCode::kIo, "not now");
    DebugLinks said = content == own ? links : DebugLinks();
    said.as_alternate = BuildId(std::as_bytes(std::span(content)));
    return said;
  }
  Result<uint32_t> Checksum(int fd) override { return ContentOf(fd)->size(); }
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
  Result<bool> JitDumpRecords(int, const JitDumpPart&, std::chrono::nanoseconds,
                              JitDumpSink) override {
    return Fail(ErrorCode::kUnsupported, "no jitdump");
  }
  Result<bool> Repeats(const FilesToRead&, const Reading&) override { return false; }

  // What the object itself is, and says.
  std::string own;
  DebugLinks links;
  bool fails = false;
};

// Every process has its root there.
class ContainedProcesses : public FakeProcesses {
 public:
  Result<UniqueFd> OpenRootOf(ObjectId /*id*/) override { return Open(root, O_PATH | O_DIRECTORY); }
  std::string root;
};

class DebugFilesTest : public testing::Test {
 protected:
  DebugFilesTest() {
    tree_.Directory("container");
    tree_.Directory("proc/1");
    tree_.Directory("host");
    tree_.Link("proc/1/root", tree_.Path("host"));
    processes_.root = tree_.Path("container");
    info_.path = "/usr/bin/program";
    info_.build_id = BuildId(kIdBytes);
    Become(content_);
  }

  // The object's own file gets this content.
  void Become(const std::string& content) {
    tree_.File("container/usr/bin/program", content);
    indexer_->own = content;
  }

  // The path in the tree of what is found, "nothing", or "itself".
  std::string Found() {
    const auto own =
        std::make_shared<const UniqueFd>(*Open(tree_.Path("container/usr/bin/program"), O_RDONLY));
    std::promise<DebugFiles::Found> promise;
    DebugFiles files({.processes = processes_,
                      .indexer = indexer_,
                      .files = std::make_shared<DirectForeignFiles>(),
                      .workers = workers_,
                      .clock = clock_,
                      .procfs = tree_.AsProcfs()});
    files.Find(*files.Prepare(ObjectId(3), info_, own),
               [&promise](DebugFiles::Found found) { promise.set_value(std::move(found)); });
    const DebugFiles::Found found = promise.get_future().get();
    const std::string alternate =
        found.alternate == nullptr ? "" : " with " + PathOf(*found.alternate);
    if (found.is_own) return "itself" + alternate;
    return (found.debug == nullptr ? "nothing" : PathOf(*found.debug)) + alternate;
  }
  std::string PathOf(const UniqueFd& file) const {
    const std::string link = "/proc/self/fd/" + std::to_string(file.get());
    return std::filesystem::read_symlink(link).string().substr(tree_.Path().size());
  }
  static std::string In(const std::string& root) { return root + "/" + kPlace; }

  const std::string content_{"\xab\xcd\xef"};
  TemporaryTree tree_;
  FakeClock clock_;
  QuestionThreads workers_{clock_};
  std::shared_ptr<ContentIndexer> indexer_ = std::make_shared<ContentIndexer>();
  ContainedProcesses processes_;
  ObjectInfo info_;
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
  ASSERT_EQ(::chown(tree_.Path("container/usr/bin/program").c_str(), kUser, kUser), 0);
  EXPECT_EQ(Found(), In("container"));
  ASSERT_EQ(::chown(tree_.Path(In("container")).c_str(), 0, 0), 0);
  EXPECT_EQ(Found(), In("container"));
}

TEST_F(DebugFilesTest, AreNotThereWithoutABuildId) {
  info_.build_id = BuildId();
  EXPECT_EQ(Found(), "nothing");
}

TEST_F(DebugFilesTest, AreNotWantedByWhatHasDebugInformationItself) {
  tree_.File(In("container"), content_);
  indexer_->links.has_debug_info = true;
  EXPECT_EQ(Found(), "itself");
}

TEST_F(DebugFilesTest, AreWhereALinkLeads) {
  indexer_->links.debug_file = DebugLink{.name = "program.debug", .checksum = 1};
  for (const char* place :
       {"host/usr/lib/debug/usr/bin/program.debug", "container/usr/lib/debug/usr/bin/program.debug",
        "container/usr/bin/.debug/program.debug", "container/usr/bin/program.debug"}) {
    tree_.File(place, "\xab\xcd\xee");
    EXPECT_NE(Found(), place) << "it has another build id";
    tree_.File(place, content_);
    EXPECT_EQ(Found(), place);
  }
  tree_.File(In("host"), content_);
  EXPECT_EQ(Found(), In("host")) << "build ids lead first";
}

// A stranger chooses where his object lies, and what it is a link to.
TEST_F(DebugFilesTest, AreNotLookedForWhereAStrangerLikes) {
  indexer_->links.debug_file = DebugLink{.name = "program.debug", .checksum = 1};
  for (const char* place : {"host/usr/bin/program.debug", "host/usr/bin/.debug/program.debug"}) {
    tree_.File(place, content_);
    EXPECT_EQ(Found(), "nothing");
  }
  indexer_->links = {.has_debug_info = true, .alternate = AlternateLink{.name = "/proc/kmsg"}};
  indexer_->links.alternate->build_id = BuildId(kIdBytes);
  tree_.File("host/proc/kmsg", content_);
  tree_.File("container/proc/kmsg", content_);
  EXPECT_EQ(Found(), "itself");
}

TEST_F(DebugFilesTest, HaveTheLinksChecksumIfTheObjectHasNoBuildId) {
  const std::string place = "container/usr/bin/program.debug";
  indexer_->links.debug_file = DebugLink{.name = "program.debug", .checksum = 4};
  tree_.File(place, "-abc");
  EXPECT_EQ(Found(), "nothing") << "the object's build id is missing";
  info_.build_id = BuildId();
  EXPECT_EQ(Found(), place);
  tree_.File(place, "abcd");
  EXPECT_EQ(Found(), place) << "whatever its build id";
  tree_.File(place, "-abcd");
  EXPECT_EQ(Found(), "nothing");
  indexer_->links.debug_file->checksum = 0;
  tree_.File(place, "");
  EXPECT_EQ(Found(), "nothing") << "no ELF file";
}

TEST_F(DebugFilesTest, MayBeTheObjectWhereItsLinksCannotBeRead) {
  indexer_->fails = true;
  EXPECT_EQ(Found(), "itself");
  tree_.File(In("host"), content_);
  EXPECT_EQ(Found(), In("host"));
}

TEST_F(DebugFilesTest, LetGoOfTheObjectWhenTheyAreFound) {
  DebugFiles files({.processes = processes_,
                    .indexer = indexer_,
                    .files = std::make_shared<DirectForeignFiles>(),
                    .workers = workers_,
                    .clock = clock_,
                    .procfs = tree_.AsProcfs()});
  auto own =
      std::make_shared<const UniqueFd>(*Open(tree_.Path("container/usr/bin/program"), O_RDONLY));
  const std::weak_ptr<const UniqueFd> watched = own;
  auto search = *files.Prepare(ObjectId(3), info_, std::move(own));
  // As UnwindTables does, who keeps what it has asked for until it is told.
  files.Find(search, [search](const DebugFiles::Found&) {});
  search = nullptr;
  EXPECT_TRUE(Eventually([&] { return watched.expired(); }));
}

TEST_F(DebugFilesTest, AreAnotherFileThanTheObject) {
  indexer_->links.debug_file = DebugLink{.name = "program.debug", .checksum = 3};
  tree_.Link("container/usr/bin/program.debug", "program");
  EXPECT_EQ(Found(), "nothing");
}

// Of the debug file and of the object, which have the same content here.
TEST_F(DebugFilesTest, ComeWithTheAlternateFileTheyReferTo) {
  constexpr std::array<std::byte, 2> kAlternate = {std::byte{0x12}, std::byte{0x34}};
  indexer_->links.alternate = AlternateLink{.name = "../../.dwz/common"};
  indexer_->links.alternate->build_id = BuildId(kAlternate);
  tree_.File(In("host"), content_);
  EXPECT_EQ(Found(), In("host")) << "without it";
  tree_.File("host/usr/lib/debug/.dwz/common", "\x12\x35");
  EXPECT_EQ(Found(), In("host")) << "it has another build id";
  tree_.File("host/usr/lib/debug/.dwz/common", "\x12\x34");
  EXPECT_EQ(Found(), In("host") + " with host/usr/lib/debug/.dwz/common");
  indexer_->links.alternate->name = "/usr/lib/debug/.dwz/common";
  EXPECT_EQ(Found(), In("host") + " with host/usr/lib/debug/.dwz/common");
  tree_.File("host/usr/lib/debug/.build-id/12/34.debug", "\x12\x34");
  EXPECT_EQ(Found(), In("host") + " with host/usr/lib/debug/.build-id/12/34.debug");

  indexer_->links.has_debug_info = true;
  EXPECT_EQ(Found(), "itself with host/usr/lib/debug/.build-id/12/34.debug");
  std::filesystem::remove_all(tree_.Path("host/usr"));
  EXPECT_EQ(Found(), "itself");
}

TEST_F(DebugFilesTest, AreLookedForAgainAfterAWhile) {
  const auto own =
      std::make_shared<const UniqueFd>(*Open(tree_.Path("container/usr/bin/program"), O_RDONLY));
  DebugFiles files({.processes = processes_,
                    .indexer = indexer_,
                    .files = std::make_shared<DirectForeignFiles>(),
                    .workers = workers_,
                    .clock = clock_,
                    .procfs = tree_.AsProcfs()});
  const auto finds = [&] {
    // Whoever is told may still be telling when the answer is here.
    const auto found = std::make_shared<std::promise<bool>>();
    files.Find(*files.Prepare(ObjectId(3), info_, own),
               [found](const DebugFiles::Found& f) { found->set_value(f.debug != nullptr); });
    return found->get_future().get();
  };
  EXPECT_FALSE(finds());
  tree_.File(In("host"), content_);
  EXPECT_FALSE(finds());
  clock_.Advance(DebugFiles::kRetry);
  EXPECT_TRUE(finds());
}

}  // namespace
}  // namespace pyrometer
