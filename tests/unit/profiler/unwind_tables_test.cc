// SPDX-License-Identifier: Apache-2.0
#include "profiler/unwind_tables.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "base/file.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

constexpr ObjectId kFirst(3);
constexpr ObjectId kSecond(4);

// Every object is there, as some file.
class OpenableProcesses : public FakeProcesses {
 public:
  Result<UniqueFd> OpenObject(ObjectId /*id*/) override { return Open("/dev/null", O_RDONLY); }
};

// Makes tables of a thousand rows that cover all their text.
class TableIndexer : public Indexer {
 public:
  Result<ObjectFacts> Inspect(int) override { return Fail(ErrorCode::kUnsupported, "no facts"); }
  Result<SymbolTable> Symbols(int, const SymbolTableOptions&) override {
    return Fail(ErrorCode::kUnsupported, "no symbols");
  }
  Result<UnwindTable> Unwind(int, const UnwindTableOptions& options) override {
    ++made;
    if (on_make) on_make(options.stop);
    if (options.stop.stop_requested()) return Fail(ErrorCode::kExhausted, "stopped");
    UnwindTable table;
    table.pages = {{0, 1000}};
    std::vector<pyro_unwind_row> rows;
    for (uint16_t i = 0; i < 1000; ++i) {
      rows.push_back({.pc_low = static_cast<uint16_t>(i * 10), .rule = 0});
    }
    options.rows->Put(std::span(rows).first(600));
    options.rows->Put(std::span(rows).last(400));
    table.text = table.covered_text = 4096;
    return table;
  }
  Result<UnwindTable> Unwind(int, int, const UnwindTableOptions& options) override {
    return Unwind(0, options);
  }

  std::atomic<int> made = 0;
  std::function<void(const std::stop_token&)> on_make;
};

class UnwindTablesTest : public testing::Test {
 protected:
  static constexpr size_t kRoomForOne = 8000;

  FakeClock clock_;
  OpenableProcesses processes_;
  TableIndexer indexer_;
  UnwindTables tables_{{.processes = processes_, .indexer = indexer_, .clock = clock_},
                       kRoomForOne};
};

TEST_F(UnwindTablesTest, MakeATableOnce) {
  EXPECT_FALSE(tables_.Has(kFirst));
  EXPECT_EQ(tables_.Of(kFirst)->row_count(), 1000U);
  EXPECT_TRUE(tables_.Has(kFirst));
  tables_.Of(kFirst);
  EXPECT_EQ(indexer_.made, 1);
}

TEST_F(UnwindTablesTest, ForgetTheOneThatWasUsedLeastWhenThereIsNoRoom) {
  tables_.Of(kFirst);
  tables_.Of(kSecond);
  EXPECT_FALSE(tables_.Has(kFirst));
  EXPECT_TRUE(tables_.Has(kSecond));
  tables_.Of(kFirst);
  EXPECT_EQ(tables_.counters().made, 3U);
  EXPECT_EQ(tables_.counters().kept, 1U);
}

TEST_F(UnwindTablesTest, LetWhoeverAsksForATableThatIsBeingMadeWaitForIt) {
  std::latch begun(1);
  std::latch go_on(1);
  indexer_.on_make = [&](const std::stop_token&) {
    begun.count_down();
    go_on.wait();
  };
  std::jthread maker([this] { tables_.Of(kFirst); });
  begun.wait();
  std::shared_ptr<const UnwindTable> seen;
  std::jthread waiter([&] { seen = tables_.Of(kFirst); });
  go_on.count_down();
  maker.join();
  waiter.join();
  EXPECT_EQ(seen->row_count(), 1000U);
  EXPECT_EQ(indexer_.made, 1);
}

TEST_F(UnwindTablesTest, MakeATableWhileAnotherTakesItsTime) {
  std::latch begun(1);
  std::latch go_on(1);
  indexer_.on_make = [&](const std::stop_token&) {
    if (indexer_.made > 1) return;
    begun.count_down();
    go_on.wait();
  };
  const std::jthread slow([this] { tables_.Of(kFirst); });
  begun.wait();
  EXPECT_EQ(tables_.Of(kSecond)->row_count(), 1000U);
  go_on.count_down();
}

TEST_F(UnwindTablesTest, LeaveATableUnmadeWhenTheyAreToStop) {
  std::latch begun(1);
  indexer_.on_make = [&](const std::stop_token& stop) {
    begun.count_down();
    std::latch stopped(1);
    const std::stop_callback on_stop(stop, [&] { stopped.count_down(); });
    stopped.wait();
  };
  std::shared_ptr<const UnwindTable> seen;
  std::jthread maker([&] { seen = tables_.Of(kFirst); });
  begun.wait();
  tables_.Stop();
  maker.join();
  EXPECT_TRUE(seen->empty());
  EXPECT_EQ(tables_.counters().failed, 1U);
}

TEST_F(UnwindTablesTest, AreEmptyForAnObjectWhoseFileIsGone) {
  FakeProcesses gone;
  UnwindTables tables({.processes = gone, .indexer = indexer_, .clock = clock_}, kRoomForOne);
  EXPECT_TRUE(tables.Of(kFirst)->empty());
  EXPECT_EQ(tables.counters().failed, 1U);
}

class SpilledUnwindTablesTest : public UnwindTablesTest {
 protected:
  // 600 rows need a block, and so do 400.
  static constexpr uint64_t kBlock = 4096;

  UnwindTables WithSpillFile(uint64_t blocks) {
    return UnwindTables(
        {.processes = processes_,
         .indexer = indexer_,
         .clock = clock_,
         .spill = *SpillFile::Open({.directories = {}, .most_in_memory = blocks * kBlock})},
        kRoomForOne);
  }
  static void ExpectAllRowsOf(const UnwindTable& table) {
    std::vector<pyro_unwind_row> buffer;
    const auto rows = table.RowsOf(0, buffer);
    ASSERT_EQ(rows.size(), 1000U);
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].pc_low, i * 10);
  }
};

TEST_F(SpilledUnwindTablesTest, KeepTheirRowsOutOfMemory) {
  UnwindTables tables = WithSpillFile(64);
  ExpectAllRowsOf(*tables.Of(kFirst));
  ExpectAllRowsOf(*tables.Of(kSecond));
  EXPECT_TRUE(tables.Has(kFirst)) << "neither takes much memory";
  EXPECT_EQ(tables.counters().spilled_bytes, 4 * kBlock);
  EXPECT_EQ(tables.counters().spills_failed, 0U);
}

TEST_F(SpilledUnwindTablesTest, KeepRowsInMemoryForWhichTheFileHasNoRoom) {
  UnwindTables tables = WithSpillFile(1);
  ExpectAllRowsOf(*tables.Of(kFirst));
  EXPECT_EQ(tables.counters().spilled_bytes, kBlock);
  EXPECT_EQ(tables.counters().spills_failed, 1U);
}

TEST_F(SpilledUnwindTablesTest, ForgetTheOneThatWasUsedLeastWhenTheFileIsNearlyFull) {
  UnwindTables tables = WithSpillFile(4);
  tables.Of(kFirst);
  tables.Of(kSecond);
  EXPECT_FALSE(tables.Has(kFirst));
  EXPECT_TRUE(tables.Has(kSecond));
  EXPECT_EQ(tables.counters().spilled_bytes, 2 * kBlock);
}

TEST_F(UnwindTablesTest, TryAFileAgainThatCouldNotBeReadForAWhile) {
  bool is_readable = false;
  class SometimesOpenable : public OpenableProcesses {
   public:
    explicit SometimesOpenable(const bool& is_readable) : is_readable_(is_readable) {}
    Result<UniqueFd> OpenObject(ObjectId id) override {
      return is_readable_ ? OpenableProcesses::OpenObject(id)
                          : Fail(ErrorCode::kExhausted, "too many open files");
    }

   private:
    const bool& is_readable_;
  } processes(is_readable);
  UnwindTables tables({.processes = processes, .indexer = indexer_, .clock = clock_}, kRoomForOne);
  EXPECT_TRUE(tables.Of(kFirst)->empty());
  EXPECT_TRUE(tables.HasFailed(kFirst));
  is_readable = true;
  EXPECT_TRUE(tables.Of(kFirst)->empty()) << "it is not opened again for each sample";
  clock_.Advance(UnwindTables::kRetry);
  EXPECT_EQ(tables.Of(kFirst)->row_count(), 1000U);
  EXPECT_FALSE(tables.HasFailed(kFirst));
}

}  // namespace
}  // namespace pyrometer
