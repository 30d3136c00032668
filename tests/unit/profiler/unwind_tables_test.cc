// SPDX-License-Identifier: Apache-2.0
#include "profiler/unwind_tables.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "foreign/direct_foreign_files.h"
#include "foreign/in_process_indexer.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

constexpr ObjectId kFirst(3);
constexpr ObjectId kSecond(4);

// Every object is there, as some file of its own.
class OpenableProcesses : public FakeProcesses {
 public:
  Result<UniqueFd> OpenObject(ObjectId /*id*/) override {
    if (!is_readable) return Fail(ErrorCode::kExhausted, "too many open files");
    return Open("/proc/self/exe", O_RDONLY);
  }
  std::optional<ObjectInfo> Object(ObjectId /*id*/) const override { return info; }

  std::optional<ObjectInfo> info;
  bool is_readable = true;
};

// Makes tables of a thousand rows that cover all their text.
class TableIndexer : public Indexer {
 public:
  Result<ObjectFacts> Inspect(int) override { return Fail(ErrorCode::kUnsupported, "no facts"); }
  Result<DebugLinks> Links(int) override { return Fail(ErrorCode::kUnsupported, "no links"); }
  Result<uint32_t> Checksum(int) override { return Fail(ErrorCode::kUnsupported, "no checksum"); }
  Result<Made<SymbolTable>> Symbols(const FilesToRead&, const SymbolTableOptions&) override {
    return Fail(ErrorCode::kUnsupported, "no symbols");
  }
  Result<Made<UnwindTable>> Unwind(const FilesToRead&, const UnwindTableOptions& options) override {
    ++made;
    if (on_make) on_make();
    if (fails) return *fails;
    UnwindTable table;
    table.pages = {{0, 1000}};
    std::vector<pyro_unwind_row> rows;
    for (uint16_t i = 0; i < 1000; ++i) {
      rows.push_back({.pc_low = static_cast<uint16_t>(i * 10), .rule = 0});
    }
    options.rows->Put(std::span(rows).first(600));
    options.rows->Put(std::span(rows).last(400));
    table.text = table.covered_text = 4096;
    return Made<UnwindTable>{.value = std::move(table), .reading = Reading()};
  }
  Result<std::vector<std::byte>> ReadCode(int fd, uint64_t offset) override {
    if (fails) return *fails;
    return InProcessIndexer().ReadCode(fd, offset);
  }
  Result<std::optional<PerfMapFunction>> PerfMapLines(int fd, const PerfMapPart& part,
                                                      std::chrono::nanoseconds at_most,
                                                      PerfMapSink sink) override {
    return InProcessIndexer().PerfMapLines(fd, part, at_most, sink);
  }
  Result<bool> JitDumpRecords(int fd, const JitDumpPart& part, std::chrono::nanoseconds at_most,
                              JitDumpSink sink) override {
    return InProcessIndexer().JitDumpRecords(fd, part, at_most, sink);
  }
  Result<bool> Repeats(const FilesToRead&, const Reading&) override { return true; }

  std::atomic<int> made = 0;
  std::optional<Error> fails;
  std::function<void()> on_make;
};

class UnwindTablesTest : public testing::Test {
 protected:
  static constexpr size_t kRoomForOne = 8000;

  // What there is in the end.
  std::shared_ptr<const UnwindTable> Await(ObjectId object) {
    std::shared_ptr<const UnwindTable> table = tables_.Of(object);
    while (table == nullptr) {
      AwaitAnswer();
      table = tables_.Of(object);
    }
    return table;
  }
  void AwaitAnswer() {
    const absl::MutexLock lock(&mutex_);
    const auto is_there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return answers_ > 0; };
    mutex_.Await(absl::Condition(&is_there));
    --answers_;
  }

  absl::Mutex mutex_;
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
  FakeClock clock_;
  OpenableProcesses processes_;
  std::shared_ptr<TableIndexer> indexer_ = std::make_shared<TableIndexer>();
  QuestionThreads workers_{clock_};
  ArtifactStore store_{{.indexer = indexer_, .workers = workers_}, kRoomForOne};
  DebugFiles debug_files_{{.processes = processes_,
                           .indexer = indexer_,
                           .files = std::make_shared<DirectForeignFiles>(),
                           .workers = workers_,
                           .clock = clock_}};
  UnwindTables tables_{{.processes = processes_,
                        .indexer = indexer_,
                        .workers = workers_,
                        .store = store_,
                        .debug_files = debug_files_,
                        .clock = clock_},
                       [this] {
                         const absl::MutexLock lock(&mutex_);
                         ++answers_;
                       }};
};

TEST_F(UnwindTablesTest, AreMadeOnceWhileOthersGoOn) {
  std::latch go_on(1);
  indexer_->on_make = [&] { go_on.wait(); };
  EXPECT_FALSE(tables_.Has(kFirst));
  EXPECT_EQ(tables_.Of(kFirst), nullptr);
  EXPECT_TRUE(tables_.IsPending(kFirst));
  EXPECT_FALSE(tables_.Has(kFirst));
  EXPECT_EQ(tables_.Of(kFirst), nullptr) << "nor is it asked for twice";
  EXPECT_EQ(tables_.counters().pending, 1U);
  go_on.count_down();
  EXPECT_EQ(Await(kFirst)->row_count(), 1000U);
  EXPECT_FALSE(tables_.IsPending(kFirst));
  EXPECT_TRUE(tables_.Has(kFirst));
  EXPECT_EQ(indexer_->made, 1);
  EXPECT_EQ(tables_.counters().pending, 0U);
}

TEST_F(UnwindTablesTest, AreOneForObjectsOfOneContent) {
  const std::array<std::byte, 2> build_id = {std::byte{1}, std::byte{2}};
  processes_.info.emplace();
  processes_.info->build_id = BuildId(build_id);
  EXPECT_EQ(Await(kFirst), Await(kSecond));
  EXPECT_EQ(indexer_->made, 1);
}

TEST_F(UnwindTablesTest, AreForgottenWhenNobodyHasTheObjectMapped) {
  Await(kFirst);
  Await(kSecond);
  tables_.Forget(std::array{kFirst});
  EXPECT_FALSE(tables_.Has(kFirst));
  EXPECT_TRUE(tables_.Has(kSecond));
  EXPECT_EQ(Await(kFirst)->row_count(), 1000U);
}

TEST_F(UnwindTablesTest, AreMadeAgainWhenTheyWereDroppedForWantOfRoom) {
  Await(kFirst);
  Await(kSecond);
  EXPECT_EQ(store_.counters().tables_kept, 1U);
  EXPECT_EQ(Await(kFirst)->row_count(), 1000U);
  EXPECT_EQ(indexer_->made, 3);
}

TEST_F(UnwindTablesTest, AreEmptyForAnObjectWhoseFileIsGone) {
  FakeProcesses gone;
  UnwindTables tables({.processes = gone,
                       .indexer = indexer_,
                       .workers = workers_,
                       .store = store_,
                       .debug_files = debug_files_,
                       .clock = clock_},
                      [] {});
  EXPECT_TRUE(tables.Of(kFirst)->unread);
  EXPECT_EQ(tables.counters().failed, 1U);
}

TEST_F(UnwindTablesTest, AreEmptyForGoodForWhatIsNoElfFile) {
  indexer_->fails = Fail(ErrorCode::kInvalid, "not an ELF file");
  EXPECT_TRUE(Await(kFirst)->empty());
  EXPECT_FALSE(Await(kFirst)->unread);
  clock_.Advance(UnwindTables::kRetry);
  EXPECT_TRUE(Await(kFirst)->empty());
  EXPECT_EQ(indexer_->made, 1);
}

TEST_F(UnwindTablesTest, AreTriedAgainLaterWhoseFileCouldNotBeRead) {
  processes_.is_readable = false;
  EXPECT_TRUE(Await(kFirst)->empty());
  EXPECT_TRUE(Await(kFirst)->unread);
  processes_.is_readable = true;
  EXPECT_TRUE(Await(kFirst)->unread) << "it is not opened again for each sample";
  clock_.Advance(UnwindTables::kRetry);
  EXPECT_EQ(Await(kFirst)->row_count(), 1000U);
  EXPECT_FALSE(Await(kFirst)->unread);
}

TEST_F(UnwindTablesTest, AreTriedAgainLaterWhoseFileSystemDoesNotAnswer) {
  indexer_->fails = Fail(ErrorCode::kExhausted, "no answer");
  EXPECT_TRUE(Await(kFirst)->unread);
  indexer_->fails.reset();
  clock_.Advance(UnwindTables::kRetry);
  EXPECT_EQ(Await(kFirst)->row_count(), 1000U);
}

TEST_F(UnwindTablesTest, ReadTheCodeOfAnObject) {
  processes_.info.emplace();
  processes_.info->segments = {{.offset = FileOffset(0),
                                .address = ElfAddress(0x400000),
                                .file_size = 0x3000,
                                .memory_size = 0x3000,
                                .executable = true}};
  std::array<std::byte, 4> magic{};
  using Code = UnwindTableSource::Code;
  EXPECT_EQ(tables_.ReadCode(kFirst, ElfAddress(0x400000), magic), Code::kRead);
  EXPECT_EQ(magic[1], std::byte{'E'});
  std::array<std::byte, 8> across_pages{};
  EXPECT_EQ(tables_.ReadCode(kFirst, ElfAddress(0x400ffc), across_pages), Code::kRead);
  EXPECT_EQ(tables_.ReadCode(kFirst, ElfAddress(0x500000), magic), Code::kNone);
  tables_.CloseFile();
  // Overwritten since it was mapped.
  processes_.info->identity = IdentityOf(processes_.OpenObject(kFirst)->get()).value();
  processes_.info->identity.modified_ns -= 1;
  EXPECT_EQ(tables_.ReadCode(kFirst, ElfAddress(0x400000), magic), Code::kNone);
  processes_.info->identity = {};
  tables_.CloseFile();
  indexer_->fails = Fail(ErrorCode::kIo, "the reader is late");
  EXPECT_EQ(tables_.ReadCode(kFirst, ElfAddress(0x400000), magic), Code::kLate);
  EXPECT_EQ(tables_.ReadCode(kFirst, ElfAddress(0x401000), magic), Code::kLate);
}

}  // namespace
}  // namespace pyrometer
