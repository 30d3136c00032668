// SPDX-License-Identifier: Apache-2.0
#include "indexer/artifact_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/file_identity.h"
#include "binary/sections.h"
#include "foreign/in_process_indexer.h"
#include "tests/shared/eventually.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr uint64_t kDisk = 1;
constexpr uint64_t kNetwork = 2;
constexpr uint64_t kLarge = uint64_t{64} << 20;
constexpr std::chrono::seconds kAmple(60);

// Tells what it is asked for, and can be held up.
class WatchedIndexer : public InProcessIndexer {
 public:
  Result<Made<UnwindTable>> Unwind(const FilesToRead& files,
                                   const UnwindTableOptions& options) override {
    ++made;
    was_large = files.is_large;
    if (before_making) before_making(files.own);
    if (!failures.empty()) {
      const ErrorCode failure = failures.front();
      failures.pop_front();
      return Fail(failure, "as it was told");
    }
    return InProcessIndexer::Unwind(files, options);
  }
  std::atomic<int> made = 0;
  std::atomic<bool> was_large = false;
  std::deque<ErrorCode> failures;  // of the next ones; the file of a test is the only one then
  std::function<void(int fd)> before_making;
};

class ArtifactStoreTest : public testing::Test {
 protected:
  using Answer = std::future<Result<ArtifactStore::ContentRef>>;

  // A file of its own with these bytes, and the build id that it claims to have.
  ArtifactStore::Source CopyOf(const std::vector<std::byte>& bytes,
                               std::string_view build_id = "0123") {
    const std::string name = std::to_string(++copies_);
    tree_.File(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return SourceOf(*Open(tree_.Path(name), O_RDWR | O_CLOEXEC), bytes, build_id);
  }
  // One that has no name.
  static ArtifactStore::Source NamelessCopyOf(const std::vector<std::byte>& bytes,
                                              std::string_view build_id = "0123") {
    UniqueFd fd(::memfd_create("copy", MFD_CLOEXEC));
    EXPECT_TRUE(WriteAll(fd.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
                    .has_value());
    return SourceOf(std::move(fd), bytes, build_id);
  }
  static ArtifactStore::Source SourceOf(UniqueFd fd, const std::vector<std::byte>& bytes,
                                        std::string_view build_id) {
    return {.own = std::make_shared<const UniqueFd>(std::move(fd)),
            .build_id = BuildId(std::as_bytes(std::span(build_id))),
            .account = kDisk,
            .size = bytes.size()};
  }
  // The same, with zeros behind.
  ArtifactStore::Source LargeCopyOf(const std::vector<std::byte>& bytes,
                                    std::string_view build_id) {
    ArtifactStore::Source source = CopyOf(bytes, build_id);
    EXPECT_EQ(::ftruncate(source.own->get(), kLarge), 0);
    source.size = kLarge;
    return source;
  }
  Answer Ask(ArtifactStore::Source source) {
    const auto answer = std::make_shared<std::promise<Result<ArtifactStore::ContentRef>>>();
    store_->AskUnwindTable(std::move(source), [answer](Result<ArtifactStore::ContentRef> content) {
      answer->set_value(std::move(content));
    });
    return answer->get_future();
  }
  ArtifactStore::ContentRef Get(ArtifactStore::Source source) {
    return Ask(std::move(source)).get().value();
  }
  std::shared_ptr<const UnwindTable> TableOf(ArtifactStore::Source source) {
    return store_->UnwindTableOf(Get(std::move(source)));
  }
  // Until the end of the test so much waits for that file system that the rest is refused.
  void TakeAllRoom(uint64_t account) {
    const auto wait = [end = end_] { end->wait(); };
    for (size_t i = 0; i < QuestionThreads::Options().per_file_system; ++i) {
      ASSERT_TRUE(workers_.Post(account, std::chrono::seconds(1), wait, nullptr));
    }
    ASSERT_TRUE(Eventually([this] { return workers_.counters().waiting == 0; }));
    while (workers_.Post(account, std::chrono::seconds(1), wait, nullptr)) {
    }
  }
  ~ArtifactStoreTest() override { end_->count_down(); }
  void Make(size_t budget) {
    store_ = std::make_unique<ArtifactStore>(
        ArtifactStore::Parts{.indexer = indexer_, .workers = workers_}, budget);
  }

  TemporaryTree tree_;
  int copies_ = 0;
  const std::vector<std::byte> program_ = FixtureBytes("unwound");
  std::shared_ptr<WatchedIndexer> indexer_ = std::make_shared<WatchedIndexer>();
  const Clock clock_;
  QuestionThreads workers_{clock_};
  const std::shared_ptr<std::latch> end_ = std::make_shared<std::latch>(1);
  std::unique_ptr<ArtifactStore> store_ = std::make_unique<ArtifactStore>(
      ArtifactStore::Parts{.indexer = indexer_, .workers = workers_}, size_t{1} << 20);
};

TEST_F(ArtifactStoreTest, MakesATableOnceForFilesOfOneContent) {
  const auto first = TableOf(CopyOf(program_));
  const auto second = TableOf(CopyOf(program_));
  ASSERT_NE(first, nullptr);
  EXPECT_FALSE(first->empty());
  EXPECT_EQ(first, second);
  EXPECT_NE(first->content, 0U);
  EXPECT_EQ(indexer_->made, 1);
  EXPECT_EQ(store_->counters().shared, 1U);
}

TEST_F(ArtifactStoreTest, SharesNothingOfFilesWithoutABuildId) {
  const auto first = TableOf(CopyOf(program_, ""));
  const auto second = TableOf(CopyOf(program_, ""));
  EXPECT_NE(first, second);
  EXPECT_NE(first->content, second->content);
  EXPECT_EQ(indexer_->made, 2);
}

// Who made one of these may have made its reader say what he likes.
TEST_F(ArtifactStoreTest, SharesNothingOfFilesOfDifferentOwners) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const auto first = TableOf(CopyOf(program_));
  ArtifactStore::Source others = CopyOf(program_);
  ASSERT_EQ(::fchown(others.own->get(), 65534, 65534), 0);
  const auto second = TableOf(others);
  EXPECT_NE(first, second);
  EXPECT_NE(first->content, second->content);
  EXPECT_EQ(indexer_->made, 2);
}

TEST_F(ArtifactStoreTest, SharesNothingOfFilesWithoutAName) {
  const auto first = TableOf(NamelessCopyOf(program_));
  const auto second = TableOf(NamelessCopyOf(program_));
  EXPECT_NE(first->content, second->content);
  EXPECT_EQ(indexer_->made, 2);
}

TEST_F(ArtifactStoreTest, TriesOnceMoreWhenAReaderDies) {
  indexer_->failures = {ErrorCode::kInternal};
  EXPECT_NE(TableOf(CopyOf(program_)), nullptr);
  EXPECT_EQ(indexer_->made, 2);
  indexer_->failures = {ErrorCode::kInternal, ErrorCode::kInternal};
  const auto answer = Ask(CopyOf(program_, "4567")).get();
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code(), ErrorCode::kInternal);
  EXPECT_EQ(indexer_->made, 4);
}

TEST_F(ArtifactStoreTest, GivesASmallFileTheMemoryOfALargeOneIfNeedBe) {
  indexer_->failures = {ErrorCode::kExhausted};
  EXPECT_NE(TableOf(CopyOf(program_)), nullptr);
  EXPECT_TRUE(indexer_->was_large);
  indexer_->failures = {ErrorCode::kExhausted, ErrorCode::kExhausted};
  EXPECT_FALSE(Ask(CopyOf(program_, "4567")).get().has_value()) << "and no more than that";
  EXPECT_EQ(indexer_->made, 4);
}

// The bytes of the first function's FDE are somebody else's.
TEST_F(ArtifactStoreTest, LetsNobodyWithAForgedBuildIdChangeAnothersTable) {
  const auto honest = TableOf(CopyOf(program_));
  std::vector<std::byte> forged = program_;
  const ElfFile elf = OpenFixture("unwound");
  const SectionTable sections = *SectionTable::Read(elf);
  const Section* const cfi = sections.Find(".eh_frame");
  ASSERT_NE(cfi, nullptr);
  for (size_t i = 0; i < cfi->header.sh_size; ++i) {
    forged[cfi->header.sh_offset + i] = std::byte{0};
  }
  const auto made_up = TableOf(CopyOf(forged));
  EXPECT_NE(made_up, honest);
  EXPECT_NE(made_up->content, honest->content);
  EXPECT_EQ(TableOf(CopyOf(program_)), honest);
  // In whatever order they come.
  Make(size_t{1} << 20);
  TableOf(CopyOf(forged));
  EXPECT_EQ(TableOf(CopyOf(program_))->digest, honest->digest);
}

TEST_F(ArtifactStoreTest, IsNotMisledByAFileThatIsChangedLater) {
  std::vector<std::byte> forged = program_;
  const ArtifactStore::Source source = CopyOf(forged, "0123");
  // Its table is made of other call frame information, and then it becomes the honest file.
  const ElfFile elf = OpenFixture("unwound");
  const Result<SectionTable> sections = SectionTable::Read(elf);
  const Section* const cfi = sections->Find(".eh_frame");
  ASSERT_EQ(::pwrite(source.own->get(), std::vector<char>(64).data(), 64,
                     static_cast<off_t>(cfi->header.sh_offset)),
            64);
  const auto made_up = TableOf(source);
  ASSERT_EQ(::pwrite(source.own->get(), program_.data(), program_.size(), 0),
            static_cast<ssize_t>(program_.size()));
  EXPECT_NE(TableOf(CopyOf(program_)), made_up);
}

TEST_F(ArtifactStoreTest, MakesNothingOfAFileThatWasOverwrittenSinceItWasMapped) {
  ArtifactStore::Source source = CopyOf(program_);
  source.mapped = IdentityOf(source.own->get()).value();
  EXPECT_NE(TableOf(source), nullptr);
  std::vector<std::byte> other = FixtureBytes("shared.so");
  ASSERT_EQ(::pwrite(source.own->get(), other.data(), other.size(), 0),
            static_cast<ssize_t>(other.size()));
  const Result<ArtifactStore::ContentRef> answer = Ask(source).get();
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code(), ErrorCode::kNotFound);
}

TEST_F(ArtifactStoreTest, MakesWhatItCanOfAFileThatWasTouchedOrCopied) {
  const UniqueFd fixture = *Open(FixturePath("unwound"), O_RDONLY);
  const BuildId build_id = InProcessIndexer().Inspect(fixture.get())->build_id;
  ASSERT_FALSE(build_id.empty());
  ArtifactStore::Source source = CopyOf(program_);
  source.build_id = build_id;
  source.mapped = IdentityOf(source.own->get()).value();
  ArtifactStore::Source copy = CopyOf(program_);
  copy.mapped = source.mapped;
  EXPECT_NE(TableOf(copy), nullptr);
  ASSERT_EQ(::futimens(source.own->get(), std::array<timespec, 2>{}.data()), 0);
  ASSERT_FALSE(IsUnchanged(source.own->get(), *source.mapped));
  EXPECT_NE(TableOf(source), nullptr);
  source.build_id = {};  // so that nobody can tell
  EXPECT_FALSE(Ask(source).get().has_value());
}

TEST_F(ArtifactStoreTest, MakesNothingOfAFileThatChangesWhileItIsRead) {
  ArtifactStore::Source source = CopyOf(program_);
  source.build_id = InProcessIndexer().Inspect(source.own->get())->build_id;
  source.mapped = IdentityOf(source.own->get()).value();
  off_t end = 0x20000;
  indexer_->before_making = [&](int fd) { EXPECT_EQ(::pwrite(fd, "x", 1, ++end), 1); };
  const Result<ArtifactStore::ContentRef> answer = Ask(source).get();
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code(), ErrorCode::kInternal);
  EXPECT_EQ(indexer_->made, 2) << "it is read once more";
}

TEST_F(ArtifactStoreTest, MakesNothingTwiceThatIsAskedForAtOnce) {
  std::latch begun(1);
  std::latch go_on(1);
  indexer_->before_making = [&](int /*fd*/) {
    begun.count_down();
    go_on.wait();
  };
  Answer first = Ask(CopyOf(program_));
  begun.wait();
  Answer second = Ask(CopyOf(program_));
  Answer third = Ask(CopyOf(program_));
  EXPECT_EQ(store_->counters().pending, 3U);
  go_on.count_down();
  const ArtifactStore::ContentRef content = first.get().value();
  EXPECT_EQ(second.get().value(), content);
  EXPECT_EQ(third.get().value(), content);
  EXPECT_EQ(indexer_->made, 1);
  EXPECT_EQ(store_->counters().pending, 0U);
}

TEST_F(ArtifactStoreTest, MakesATableWhileAnotherTakesItsTime) {
  std::latch begun(1);
  std::latch go_on(1);
  indexer_->before_making = [&](int /*fd*/) {
    if (indexer_->made > 1) return;
    begun.count_down();
    go_on.wait();
  };
  Answer slow = Ask(CopyOf(program_, "slow"));
  begun.wait();
  EXPECT_NE(TableOf(CopyOf(program_, "fast")), nullptr);
  go_on.count_down();
  EXPECT_TRUE(slow.get().has_value());
}

TEST_F(ArtifactStoreTest, MakesTablesOfSmallFilesWhileLargeOnesTakeTheirTime) {
  std::latch go_on(1);
  indexer_->before_making = [&](int fd) {
    if (IdentityOf(fd)->size == kLarge) go_on.wait();
  };
  Answer first = Ask(LargeCopyOf(program_, "first"));
  Answer second = Ask(LargeCopyOf(program_, "second"));
  Answer small = Ask(CopyOf(program_, "small"));
  EXPECT_EQ(small.wait_for(kAmple), std::future_status::ready);
  EXPECT_EQ(store_->counters().pending, 2U);
  go_on.count_down();
  EXPECT_TRUE(first.get().has_value());
  EXPECT_TRUE(second.get().has_value());
}

TEST_F(ArtifactStoreTest, DropsTheOneThatWasUsedLeastWhenThereIsNoRoom) {
  Make(1);
  const ArtifactStore::ContentRef first = Get(CopyOf(program_));
  const ArtifactStore::ContentRef second = Get(CopyOf(program_, "other"));
  EXPECT_EQ(store_->UnwindTableOf(first), nullptr);
  EXPECT_NE(store_->UnwindTableOf(second), nullptr) << "the last one stays, however large";
  EXPECT_EQ(store_->counters().tables_kept, 1U);
}

TEST_F(ArtifactStoreTest, MakesADroppedTableAgainAsTheSameContent) {
  Make(1);
  const ArtifactStore::ContentRef first = Get(CopyOf(program_));
  const uint64_t number = store_->UnwindTableOf(first)->content;
  const ArtifactStore::ContentRef other = Get(CopyOf(program_, "other"));
  EXPECT_EQ(Get(CopyOf(program_)), first);
  EXPECT_EQ(store_->UnwindTableOf(first)->content, number);
}

TEST_F(ArtifactStoreTest, DropsAllButTheLastWhenMemoryIsShort) {
  const ArtifactStore::ContentRef first = Get(CopyOf(program_));
  const ArtifactStore::ContentRef second = Get(CopyOf(program_, "other"));
  EXPECT_EQ(store_->counters().tables_kept, 2U);
  store_->DropKept();
  EXPECT_EQ(store_->UnwindTableOf(first), nullptr);
  EXPECT_NE(store_->UnwindTableOf(second), nullptr);
}

TEST_F(ArtifactStoreTest, SaysWhyThereIsNoTable) {
  const std::vector<std::byte> text(100, std::byte{'#'});
  EXPECT_EQ(Ask(CopyOf(text)).get().error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(store_->counters().failed, 1U);
}

TEST_F(ArtifactStoreTest, AnswersAllWhoAskedOnceItStopsMakingTables) {
  std::latch begun(1);
  std::latch go_on(1);
  indexer_->before_making = [&](int /*fd*/) {
    begun.count_down();
    go_on.wait();
  };
  Answer first = Ask(CopyOf(program_));
  begun.wait();
  Answer second = Ask(CopyOf(program_));
  store_->StopUnwindTables();
  EXPECT_FALSE(second.get().has_value());
  EXPECT_FALSE(Ask(CopyOf(program_, "later")).get().has_value());
  go_on.count_down();
  EXPECT_FALSE(first.get().has_value()) << "it was left unfinished";
  EXPECT_EQ(store_->counters().pending, 0U);
}

TEST_F(ArtifactStoreTest, RefusesFilesOfAFileSystemForWhichTooManyWait) {
  TakeAllRoom(kNetwork);
  ArtifactStore::Source source = CopyOf(program_);
  source.account = kNetwork;
  EXPECT_EQ(Ask(source).get().error().code(), ErrorCode::kIo);
  EXPECT_EQ(store_->counters().unanswered, 1U);
  EXPECT_TRUE(Ask(CopyOf(program_)).get().has_value()) << "others go on";
}

// Thousands of containers may have one file; a refusal within a refusal, that often, is too deep.
TEST_F(ArtifactStoreTest, AnswersAllThatWaitForOneOfTheirBuildIdWhenTheyAreRefused) {
  constexpr uint64_t kMany = 30'000;
  TakeAllRoom(kNetwork);
  std::latch begun(1);
  std::latch go_on(1);
  indexer_->before_making = [&](int /*fd*/) {
    begun.count_down();
    go_on.wait();
  };
  const ArtifactStore::Source disk = CopyOf(program_);
  Answer first = Ask(disk);
  begun.wait();
  ArtifactStore::Source network = disk;
  network.account = kNetwork;
  std::latch answered(kMany);
  for (uint64_t i = 0; i < kMany; ++i) {
    store_->AskUnwindTable(network, [&](const auto&) { answered.count_down(); });
  }
  go_on.count_down();
  EXPECT_TRUE(first.get().has_value());
  answered.wait();
  EXPECT_EQ(store_->counters().pending, 0U);
}

TEST_F(ArtifactStoreTest, LeavesAFileAloneThatIsStillBeingReadAtItsEnd) {
  const auto begun = std::make_shared<std::latch>(1);
  const auto go_on = std::make_shared<std::promise<void>>();
  indexer_->before_making = [begun, go_on](int /*fd*/) {
    begun->count_down();
    go_on->get_future().wait();
  };
  Answer first = Ask(CopyOf(program_));
  begun->wait();
  store_.reset();
  go_on->set_value();
}

}  // namespace
}  // namespace pyrometer
