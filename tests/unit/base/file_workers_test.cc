// SPDX-License-Identifier: Apache-2.0
#include "base/file_workers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "tests/shared/eventually.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kLocal = 1;
constexpr uint64_t kHung = 2;
constexpr seconds kAmple(60);
constexpr milliseconds kShort(20);
constexpr FileEffort kLarge = FileEffort::kLarge;

// Reads of it wait until it is opened. Shared with jobs, which may outlive the test.
class Gate {
 public:
  Gate() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_.Reset(ends[0]);
    write_.Reset(ends[1]);
  }
  void Pass() const {
    char byte = 0;
    EXPECT_EQ(::read(read_.get(), &byte, 1), 0);
  }
  void Open() { write_.Reset(); }

 private:
  UniqueFd read_;
  UniqueFd write_;
};

// Holds every thread of the workers until it is opened, so that what is posted meanwhile begins
// together, however long the posting takes.
class Hold {
 public:
  // REQUIRES: none of these file systems has jobs.
  Hold(FileWorkers& workers, size_t threads) {
    for (size_t i = 0; i < threads; ++i) {
      const auto pass = [gate = gate_] { gate->Pass(); };
      EXPECT_TRUE(workers.Post(1000 + i, kAmple, pass, nullptr));
    }
    EXPECT_TRUE(Eventually([&] { return workers.counters().waiting == 0; }));
  }
  ~Hold() { Open(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  void Open() { gate_->Open(); }

 private:
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

// How jobs ended, in the order of their ends.
class Ends {
 public:
  FileWorkers::OnEnd Note() {
    return [this](FileWork work) {
      const std::lock_guard lock(mutex_);
      ends_.push_back(work);
      changed_.notify_all();
    };
  }
  std::vector<FileWork> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kAmple, [&] { return ends_.size() >= count; });
    return ends_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FileWork> ends_;
};

// In what order jobs were done.
class Order {
 public:
  FileWorkers::Job Note(int number, FileEffort effort = FileEffort::kSmall) {
    const auto note = [this, number] {
      const std::lock_guard lock(mutex_);
      done_.push_back(number);
    };
    return {note, effort};
  }
  std::vector<int> done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  std::mutex mutex_;
  std::vector<int> done_;
};

class FileWorkersTest : public testing::Test {
 protected:
  ~FileWorkersTest() override { gate_->Open(); }

  FileWorkers::Job Hang() const {
    return [gate = gate_] { gate->Pass(); };
  }

  FileWorkers::Job HangForLong() const {
    return {[gate = gate_] { gate->Pass(); }, kLarge};
  }

  static FileWorkers::Options LongPauses() {
    return {.pauses = {.first = std::chrono::hours(1), .longest = std::chrono::hours(1)}};
  }

  Ends ends_;
  Order order_;
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

TEST_F(FileWorkersTest, DoesAJobOnAnotherThread) {
  FileWorkers workers;
  std::thread::id there;
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [&] { there = std::this_thread::get_id(); }),
            FileWork::kDone);
  EXPECT_NE(there, std::thread::id());
  EXPECT_NE(there, std::this_thread::get_id());
  EXPECT_EQ(workers.counters().done, 1);
}

TEST_F(FileWorkersTest, BringsAnAnswer) {
  FileWorkers workers;
  EXPECT_EQ(workers.Ask<int>(kLocal, kAmple, kAmple, [] { return 7; }), 7);
}

TEST_F(FileWorkersTest, WaitsNoLongerThanItsCallerWants) {
  FileWorkers workers;
  EXPECT_EQ(workers.Run(kHung, kShort, kAmple, Hang()), FileWork::kLate);
  EXPECT_EQ(workers.counters().late, 0) << "for the file system it is in time";
  gate_->Open();
  EXPECT_TRUE(Eventually([&] { return workers.counters().done == 1; }));
}

TEST_F(FileWorkersTest, GivesUpAJobThatIsLate) {
  FileWorkers workers;
  ASSERT_TRUE(workers.Post(kHung, kShort, Hang(), ends_.Note()));
  EXPECT_EQ(ends_.WaitFor(1), std::vector{FileWork::kLate});
  EXPECT_EQ(workers.counters().late, 1);
  EXPECT_EQ(workers.counters().stuck, 1);
  gate_->Open();
  EXPECT_TRUE(Eventually([&] { return workers.counters().stuck == 0; }));
  EXPECT_EQ(workers.counters().done, 0);
  EXPECT_EQ(ends_.WaitFor(1).size(), 1) << "it was told once";
}

TEST_F(FileWorkersTest, ReplacesEveryThreadThatIsStuck) {
  FileWorkers workers({.threads = 2, .per_file_system = 1});
  for (uint64_t hung = 10; hung < 16; ++hung) {
    ASSERT_TRUE(workers.Post(hung, kShort, Hang(), ends_.Note()));
  }
  EXPECT_EQ(ends_.WaitFor(6), std::vector(6, FileWork::kLate));
  EXPECT_EQ(workers.counters().stuck, 6);
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
}

TEST_F(FileWorkersTest, TakesAJobsWordThatItsFileSystemDoesNotAnswer) {
  FileWorkers workers(LongPauses());
  EXPECT_EQ(workers.Run(kHung, kAmple, kAmple, [] { return FileWork::kLate; }), FileWork::kLate);
  EXPECT_EQ(workers.Run(kHung, kAmple, kAmple, [] {}), FileWork::kRefused);
  EXPECT_EQ(workers.counters().late, 1);
  EXPECT_EQ(workers.counters().stuck, 0);
}

TEST_F(FileWorkersTest, KeepsASlowFileSystemFromTakingAllThreads) {
  FileWorkers workers({.threads = 3, .per_file_system = 2});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(workers.Post(kHung, kAmple, Hang(), ends_.Note()));
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
  EXPECT_EQ(workers.counters().waiting, 8);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(10), std::vector(10, FileWork::kDone));
}

TEST_F(FileWorkersTest, DoesSmallJobsWhileLargeOnesOfTheirFileSystemWait) {
  FileWorkers workers;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(workers.Post(kLocal, kAmple, HangForLong(), ends_.Note()));
  }
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
  EXPECT_EQ(workers.counters().waiting, 2);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(3), std::vector(3, FileWork::kDone));
}

TEST_F(FileWorkersTest, DoesSmallJobsWhileLargeOnesOfAllFileSystemsWait) {
  FileWorkers workers;
  for (uint64_t busy = 10; busy < 20; ++busy) {
    ASSERT_TRUE(workers.Post(busy, kAmple, HangForLong(), ends_.Note()));
  }
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
  EXPECT_EQ(workers.counters().waiting, 10 - FileWorkers::Options().large);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(10), std::vector(10, FileWork::kDone));
}

TEST_F(FileWorkersTest, BeginsALargeJobBeforeSmallOnesThatCameLater) {
  FileWorkers workers({.per_file_system = 2});
  const auto first = std::make_shared<Gate>();
  const auto pass_first = [first] { first->Pass(); };
  ASSERT_TRUE(workers.Post(kLocal, kAmple, {pass_first, kLarge}, ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kAmple, Hang(), ends_.Note())) << "leaves room for one";
  ASSERT_TRUE(workers.Post(kLocal, kAmple, order_.Note(1, kLarge), ends_.Note()));
  for (int number = 2; number < 9; ++number) {
    ASSERT_TRUE(workers.Post(kLocal, kAmple, order_.Note(number), ends_.Note()));
  }
  first->Open();
  EXPECT_EQ(ends_.WaitFor(9), std::vector(9, FileWork::kDone));
  EXPECT_EQ(order_.done(), (std::vector{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(FileWorkersTest, BeginsWhatIsDueFirst) {
  FileWorkers workers({.threads = 2, .per_file_system = 1});
  ASSERT_TRUE(workers.Post(kLocal, kAmple, Hang(), ends_.Note()));
  ASSERT_TRUE(Eventually([&] { return workers.counters().waiting == 0; }));
  ASSERT_TRUE(workers.Post(kLocal, kAmple, order_.Note(1), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kAmple / 2, order_.Note(2), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kAmple / 4, order_.Note(3), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kAmple / 2, order_.Note(4), ends_.Note()));
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(5), std::vector(5, FileWork::kDone));
  EXPECT_EQ(order_.done(), (std::vector{3, 2, 4, 1}));
}

TEST_F(FileWorkersTest, LetsShorterJobsPassForAsLongOnlyAsTheyAreShorter) {
  FileWorkers workers({.threads = 2, .per_file_system = 1});
  ASSERT_TRUE(workers.Post(kLocal, kAmple, Hang(), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kAmple, order_.Note(1), ends_.Note()));
  const MonotonicTime later = After(MonotonicNow(), milliseconds(1));
  ASSERT_TRUE(Eventually([later] { return later < MonotonicNow(); }));
  ASSERT_TRUE(workers.Post(kLocal, kAmple - milliseconds(1), order_.Note(2), ends_.Note()));
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(3), std::vector(3, FileWork::kDone));
  EXPECT_EQ(order_.done(), (std::vector{1, 2}));
}

TEST_F(FileWorkersTest, LosesNoMoreThreadsToLargeAndSmallJobsOfOneFileSystem) {
  FileWorkers workers(LongPauses());
  Hold hold(workers, FileWorkers::Options().threads);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(workers.Post(kHung, kShort, HangForLong(), ends_.Note()));
    ASSERT_TRUE(workers.Post(kHung, kShort, Hang(), ends_.Note()));
  }
  hold.Open();
  const std::vector<FileWork> ends = ends_.WaitFor(6);
  // Two, unless one is late already when the other's thread gets a CPU.
  const auto late = std::ranges::count(ends, FileWork::kLate);
  EXPECT_GE(late, 1);
  EXPECT_LE(late, 2);
  EXPECT_EQ(std::ranges::count(ends, FileWork::kRefused), 6 - late);
}

TEST_F(FileWorkersTest, TriesAFileSystemByALargeJobWhileAnotherIsStuck) {
  FileWorkers workers({.pauses = {.first = milliseconds(1), .longest = milliseconds(1)}});
  ASSERT_TRUE(workers.Post(kHung, kShort, HangForLong(), ends_.Note()));
  ends_.WaitFor(1);
  const auto try_it = [&] { return workers.Run(kHung, kAmple, kAmple, {[] {}, kLarge}); };
  EXPECT_TRUE(Eventually([&] { return try_it() == FileWork::kDone; }));
  EXPECT_EQ(workers.counters().stuck, 1);
}

TEST_F(FileWorkersTest, BeginsALargeJobInPlaceOfOneThatIsLate) {
  FileWorkers workers({.threads = 3, .large = 1});
  ASSERT_TRUE(workers.Post(kHung, milliseconds(200), HangForLong(), ends_.Note()));
  ASSERT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone) << "by an idle thread";
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, {[] {}, kLarge}), FileWork::kDone);
}

TEST_F(FileWorkersTest, RefusesWhatWaitsForAFileSystemThatIsLate) {
  FileWorkers workers(LongPauses());
  const auto first = std::make_shared<Gate>();
  ASSERT_TRUE(workers.Post(kHung, kAmple, Hang(), ends_.Note()));
  ASSERT_TRUE(workers.Post(
      kHung, kAmple, [first] { first->Pass(); }, ends_.Note()));
  ASSERT_TRUE(Eventually([&] { return workers.counters().waiting == 0; })) << "it has no more room";
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(workers.Post(kHung, kShort, Hang(), ends_.Note()));
  first->Open();
  const std::vector<FileWork> ends = ends_.WaitFor(5);
  EXPECT_EQ(std::ranges::count(ends, FileWork::kDone), 1);
  EXPECT_EQ(std::ranges::count(ends, FileWork::kLate), 1) << "the next that began";
  EXPECT_EQ(std::ranges::count(ends, FileWork::kRefused), 3);
}

TEST_F(FileWorkersTest, RefusesAFileSystemThatWasLateAndNoOther) {
  FileWorkers workers(LongPauses());
  ASSERT_TRUE(workers.Post(kHung, kShort, Hang(), ends_.Note()));
  ends_.WaitFor(1);
  EXPECT_EQ(workers.Run(kHung, kAmple, kAmple, [] {}), FileWork::kRefused);
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
  EXPECT_EQ(workers.counters().refused, 1);
}

TEST_F(FileWorkersTest, ServesAFileSystemAgainThatWasInTime) {
  FileWorkers workers({.pauses = {.first = milliseconds(1), .longest = milliseconds(1)}});
  ASSERT_TRUE(workers.Post(kHung, kShort, Hang(), ends_.Note()));
  ends_.WaitFor(1);
  EXPECT_TRUE(
      Eventually([&] { return workers.Run(kHung, kAmple, kAmple, [] {}) == FileWork::kDone; }));
  EXPECT_EQ(workers.Run(kHung, kAmple, kAmple, [] {}), FileWork::kDone);
}

TEST_F(FileWorkersTest, LetsNoMoreProbesGetStuckThanAFileSystemMayHaveJobs) {
  FileWorkers workers({.pauses = {.first = milliseconds(1), .longest = milliseconds(1)}});
  size_t late = 0;
  for (int i = 0; i < 200; ++i) {
    if (workers.Post(kHung, milliseconds(1), Hang(), ends_.Note())) ends_.WaitFor(++late);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(late, FileWorkers::Options().per_file_system);
}

TEST_F(FileWorkersTest, ServesOnlyFileSystemsThatAnsweredWhenTooManyAreStuck) {
  FileWorkers::Options options = LongPauses();
  options.max_stuck = 3;
  FileWorkers workers(options);
  ASSERT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
  for (uint64_t hung = 10; hung < 13; ++hung) {
    ASSERT_TRUE(workers.Post(hung, kShort, Hang(), ends_.Note()));
  }
  ends_.WaitFor(3);
  EXPECT_EQ(workers.Run(99, kAmple, kAmple, [] {}), FileWork::kRefused);
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
}

TEST_F(FileWorkersTest, RefusesWhatDoesNotFit) {
  FileWorkers workers({.threads = 2, .per_file_system = 1, .max_waiting = 8});
  int posted = 0;
  while (workers.Post(kHung, kAmple, Hang(), ends_.Note())) ++posted;
  EXPECT_GE(posted, 2);
  EXPECT_LE(posted, 3) << "one that runs and a quarter of the waiting ones";
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [] {}), FileWork::kDone);
}

TEST_F(FileWorkersTest, EndsWhileJobsAreStuck) {
  auto ended = std::make_shared<std::atomic<int>>(0);
  {
    FileWorkers workers;
    ASSERT_TRUE(workers.Post(kHung, kShort, Hang(), ends_.Note()));
    ends_.WaitFor(1);
    const auto note = [ended](FileWork /*work*/) { ++*ended; };
    ASSERT_TRUE(workers.Post(kLocal, kAmple, Hang(), note));
    ASSERT_TRUE(workers.Post(kLocal, kAmple, Hang(), note));
    ASSERT_TRUE(workers.Post(kLocal, kAmple, Hang(), note)) << "waits for the others";
  }
  const std::weak_ptr<Gate> held = gate_;
  gate_->Open();
  gate_.reset();
  EXPECT_TRUE(Eventually([&] { return held.expired(); })) << "the threads end";
  gate_ = std::make_shared<Gate>();
  EXPECT_EQ(*ended, 0) << "nobody is told any more";
}

TEST_F(FileWorkersTest, OwnsAJobNoLongerThanItRuns) {
  FileWorkers workers;
  auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> held = owned;
  EXPECT_EQ(workers.Run(kLocal, kAmple, kAmple, [owned] {}), FileWork::kDone);
  owned.reset();
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace pyrometer
