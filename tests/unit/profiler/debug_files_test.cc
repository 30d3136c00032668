// SPDX-License-Identifier: Apache-2.0
#include "profiler/debug_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/direct_foreign_files.h"
#include "base/file.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

constexpr std::array<std::byte, 3> kIdBytes = {std::byte{0xab}, std::byte{0xcd}, std::byte{0xef}};
constexpr const char* kPlace = "usr/lib/debug/.build-id/ab/cdef.debug";

// Whatever was read of it before.
Result<std::string> ContentOf(int fd) {
  ::lseek(fd, 0, SEEK_SET);
  return ReadAll(fd, 100);
}

// A file's whole content is its build id.
class ContentIndexer : public Indexer {
 public:
  Result<ObjectFacts> Inspect(int fd) override {
    ASSIGN_OR_RETURN(const std::string content, ContentOf(fd));
    return ObjectFacts{.build_id = BuildId(std::as_bytes(std::span(content))), .segments = {}};
  }
  Result<DebugLinks> Links(int fd) override {
    ASSIGN_OR_RETURN(const std::string content, ContentOf(fd));
    const auto known = links.find(content);
    return known == links.end() ? DebugLinks() : known->second;
  }
  Result<uint32_t> Checksum(int fd) override {
    ASSIGN_OR_RETURN(const std::string content, ContentOf(fd));
    return static_cast<uint32_t>(content.size());
  }
  Result<Made<SymbolTable>> Symbols(const FilesToRead&, const SymbolTableOptions&) override {
    return Fail(ErrorCode::kUnsupported, "no symbols");
  }
  Result<Made<SourceMap>> Sources(const FilesToRead&, const SymbolTableOptions&) override {
    return Fail(ErrorCode::kUnsupported, "no sources");
  }
  Result<Made<UnwindTable>> Unwind(const FilesToRead&, const UnwindTableOptions&) override {
    return Fail(ErrorCode::kUnsupported, "no table");
  }
  Result<bool> Repeats(const FilesToRead&, const Reading&) override { return false; }
  Result<std::vector<std::byte>> Bytes(int, FileOffset, size_t) override {
    return Fail(ErrorCode::kUnsupported, "no bytes");
  }
  Result<PerfMapEnd> PerfMapLines(int, const PerfMapPart&, OnPerfMapFunction) override {
    return Fail(ErrorCode::kUnsupported, "no perf maps");
  }
  Result<JitDumpEnd> JitDumpRecords(int, const JitDumpPart&, OnJitCode) override {
    return Fail(ErrorCode::kUnsupported, "no jitdumps");
  }

  std::map<std::string, DebugLinks> links;  // by content
};

// A process that has a file of this content for whoever asks.
Nursery::Work Serving(std::string content) {
  return [content = std::move(content)](const MessageSocket& socket) {
    socket.Send(DownloadReply{.what = DownloadReply::What::kReady}).has_value();
    DownloadRequest request;
    while (socket.Receive(request)) {
      const UniqueFd file(::memfd_create("download", MFD_CLOEXEC));
      WriteAll(file.get(), content).has_value();
      ::lseek(file.get(), 0, SEEK_SET);
      socket.Send(DownloadReply{.what = DownloadReply::What::kFound}, file.get()).has_value();
    }
  };
}

class DebugFilesTest : public testing::Test {
 protected:
  DebugFilesTest() {
    for (const char* name : {"container", "host"}) tree_.Directory(name);
  }

  // The paths in the tree of what is found, with spaces between; or "nothing".
  std::string Found() {
    std::vector<UniqueFd> roots;
    for (const char* name : {"container", "host"}) {
      roots.push_back(*Open(tree_.Path(name), O_PATH | O_DIRECTORY));
    }
    DebugFiles files({.indexer = indexer_,
                      .files = std::make_shared<DirectForeignFiles>(),
                      .workers = workers_,
                      .clock = clock_,
                      .server = server_.get()});
    std::promise<FoundDebugFiles> promise;
    files.Find(ObjectId(3), std::move(roots), object_,
               [&promise](FoundDebugFiles found) { promise.set_value(std::move(found)); });
    const FoundDebugFiles found = promise.get_future().get();
    if (found.supplement != nullptr) return PathOf(found.debug) + " " + PathOf(found.supplement);
    if (found.splits.empty()) return PathOf(found.debug);
    std::string paths;
    for (const DebugFile& split : found.splits) paths += (paths.empty() ? "" : " ") + PathOf(split);
    return paths;
  }
  std::string PathOf(const DebugFile& file) const {
    if (file == nullptr) return "nothing";
    const std::string link = "/proc/self/fd/" + std::to_string(file->get());
    const std::string path = std::filesystem::read_symlink(link).string();
    return path.starts_with("/memfd:") ? "served" : path.substr(tree_.Path().size());
  }
  std::unique_ptr<DebuginfodClient> StartServer(const std::string& content) const {
    return *DebuginfodClient::Start(
        {.downloads = {.urls = "http://nowhere", .directory = tree_.Path("downloads")},
         .work = Serving(content)});
  }
  // The object is a file of its own, which says this of others.
  void ObjectSays(const DebugLinks& links) {
    tree_.File("object", kObject);
    object_.own = std::make_shared<const UniqueFd>(*Open(tree_.Path("object"), O_RDONLY));
    object_.path = "/usr/bin/program";
    indexer_->links[kObject] = links;
  }
  static std::string In(const std::string& root) { return root + "/" + kPlace; }

  const std::string content_{"\xab\xcd\xef"};
  TemporaryTree tree_;
  FakeClock clock_;
  std::unique_ptr<DebuginfodClient> server_;  // null: there is none
  FileWorkers workers_;
  static constexpr const char* kObject = "object";
  std::shared_ptr<ContentIndexer> indexer_ = std::make_shared<ContentIndexer>();
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

TEST_F(DebugFilesTest, AreFoundByTheNameThatTheObjectGivesThem) {
  ObjectSays({.name = "program.debug", .checksum = 99});
  EXPECT_EQ(Found(), "nothing");
  for (const char* place :
       {"container/usr/lib/debug/usr/bin/program.debug", "container/usr/bin/.debug/program.debug",
        "container/usr/bin/program.debug"}) {
    tree_.File(place, "\xab\xcd\xee");
    EXPECT_NE(Found(), place) << "of another build";
    tree_.File(place, content_);
    EXPECT_EQ(Found(), place);
  }
  tree_.File(In("container"), content_);
  EXPECT_EQ(Found(), In("container")) << "the build id comes first";
}

TEST_F(DebugFilesTest, AreKnownByTheirChecksumWithoutABuildId) {
  object_.build_id = BuildId();
  ObjectSays({.name = "program.debug", .checksum = 5});
  tree_.File("container/usr/bin/program.debug", "four");
  EXPECT_EQ(Found(), "nothing");
  tree_.File("host/usr/bin/program.debug", "fives");
  EXPECT_EQ(Found(), "host/usr/bin/program.debug");
}

TEST_F(DebugFilesTest, HaveNamesAndNoPaths) {
  tree_.File("container/usr/program.debug", content_);
  for (const char* name : {"../program.debug", "..", "."}) {
    ObjectSays({.name = name, .checksum = 3});
    EXPECT_EQ(Found(), "nothing") << name;
  }
}

TEST_F(DebugFilesTest, ComeWithTheirSupplement) {
  tree_.File(In("container"), content_);
  const std::string shared = "\x12\x34";
  const BuildId shared_id(std::as_bytes(std::span(shared)));
  indexer_->links[content_] = {.supplement = "/usr/lib/debug/.dwz/shared.debug",
                               .supplement_id = shared_id};
  EXPECT_EQ(Found(), In("container"));
  const std::string place = "container/usr/lib/debug/.dwz/shared.debug";
  tree_.File(place, "\x12\x35");
  EXPECT_EQ(Found(), In("container")) << "of another build";
  tree_.File(place, shared);
  EXPECT_EQ(Found(), In("container") + " " + place);
  indexer_->links[content_].supplement = "../../.dwz/shared.debug";
  EXPECT_EQ(Found(), In("container") + " " + place) << "seen from the debug file";
  tree_.File("container/usr/lib/debug/.build-id/12/34.debug", shared);
  EXPECT_EQ(Found(), In("container") + " container/usr/lib/debug/.build-id/12/34.debug");
}

TEST_F(DebugFilesTest, MayBeAPackageOfSplitUnits) {
  tree_.File("container/usr/bin/program.dwp", "units");
  ObjectSays({});
  EXPECT_EQ(Found(), "nothing");
  ObjectSays({.may_be_split = true});
  EXPECT_EQ(Found(), "container/usr/bin/program.dwp");
}

TEST_F(DebugFilesTest, HaveSplitUnitsWhereTheCompilerPutThem) {
  tree_.File("host/build/a.dwo", "units");
  tree_.File("host/build/c.dwo", "units");
  tree_.File("host/build/secret", "of somebody");
  ObjectSays({.may_be_split = true,
              .splits = {"/build/a.dwo", "/build/b.dwo", "/build/secret", "/build/c.dwo"}});
  EXPECT_EQ(Found(), "host/build/a.dwo host/build/c.dwo");
  tree_.File("host/usr/bin/program.dwp", "units");
  EXPECT_EQ(Found(), "host/usr/bin/program.dwp") << "a package has them all";
}

TEST_F(DebugFilesTest, ComeFromAServerIfTheyAreInNoRoot) {
  server_ = StartServer(content_);
  EXPECT_EQ(Found(), "served");
  EXPECT_EQ(server_->counts().found, 1U);
  tree_.File(In("host"), content_);
  EXPECT_EQ(Found(), In("host"));
  EXPECT_EQ(server_->counts().found, 1U) << "nobody asked it";
}

TEST_F(DebugFilesTest, ComeFromAServerOnlyForThoseWhoCanWaitForIt) {
  server_ = StartServer(content_);
  DebugFiles files({.indexer = indexer_,
                    .files = std::make_shared<DirectForeignFiles>(),
                    .workers = workers_,
                    .clock = clock_,
                    .server = server_.get()});
  const auto answer_of = [](auto ask) {
    std::promise<FoundDebugFiles> promise;
    ask([&promise](FoundDebugFiles found) { promise.set_value(std::move(found)); });
    return promise.get_future().get().debug;
  };
  const DebugFile here = answer_of([&](DebugFiles::OnFound on_found) {
    files.FindHere(ObjectId(3), {}, object_, std::move(on_found));
  });
  EXPECT_EQ(here, nullptr);
  EXPECT_EQ(server_->counts().found, 0U);
  const DebugFile there = answer_of([&](DebugFiles::OnFound on_found) {
    files.FindThere(ObjectId(3), object_, std::move(on_found));
  });
  EXPECT_EQ(PathOf(there), "served") << "that it is not here says nothing of the server";
}

TEST_F(DebugFilesTest, OfAServerHaveTheBuildIdOfTheObjectToo) {
  server_ = StartServer("\xab\xcd\xee");
  EXPECT_EQ(Found(), "nothing");
  EXPECT_EQ(server_->counts().found, 1U);
}

TEST_F(DebugFilesTest, AreNotThereWithoutABuildId) {
  object_.build_id = BuildId();
  EXPECT_EQ(Found(), "nothing");
}

}  // namespace
}  // namespace pyrometer
