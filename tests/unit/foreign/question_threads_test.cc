// SPDX-License-Identifier: Apache-2.0
#include "foreign/question_threads.h"

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
constexpr seconds kPatience(60);
constexpr milliseconds kShort(20);
constexpr Effort kLarge = Effort::kLarge;

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

// How jobs ended, in the order of their ends.
class Ends {
 public:
  QuestionThreads::OnEnd Note() {
    return [this](QuestionEnd work) {
      const std::lock_guard lock(mutex_);
      ends_.push_back(work);
      changed_.notify_all();
    };
  }
  std::vector<QuestionEnd> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return ends_.size() >= count; });
    return ends_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<QuestionEnd> ends_;
};

// In what order jobs were done.
class Order {
 public:
  QuestionThreads::Job Note(int number, Effort effort = Effort::kSmall) {
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

class QuestionThreadsTest : public testing::Test {
 protected:
  ~QuestionThreadsTest() override { gate_->Open(); }

  QuestionThreads::Job Hang() const {
    return [gate = gate_] { gate->Pass(); };
  }

  QuestionThreads::Job HangForLong() const {
    return {[gate = gate_] { gate->Pass(); }, kLarge};
  }

  // Waits as one does that asks a file system which does not answer.
  QuestionThreads::Job HangAndBeLate() const {
    return [gate = gate_] {
      gate->Pass();
      return QuestionEnd::kLate;
    };
  }

  const Clock clock_;
  Ends ends_;
  Order order_;
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

TEST_F(QuestionThreadsTest, DoesAJobOnAnotherThread) {
  QuestionThreads workers(clock_);
  std::thread::id there;
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [&] { there = std::this_thread::get_id(); }),
            QuestionEnd::kDone);
  EXPECT_NE(there, std::thread::id());
  EXPECT_NE(there, std::this_thread::get_id());
  EXPECT_EQ(workers.counters().done, 1);
}

TEST_F(QuestionThreadsTest, BringsAnAnswer) {
  QuestionThreads workers(clock_);
  EXPECT_EQ(workers.Ask<int>(kLocal, kPatience, kPatience, [] { return 7; }), 7);
}

TEST_F(QuestionThreadsTest, WaitsNoLongerThanItsCallerWants) {
  QuestionThreads workers(clock_);
  EXPECT_EQ(workers.Run(kHung, kShort, kPatience, Hang()), QuestionEnd::kLate);
  EXPECT_EQ(workers.counters().late, 0) << "its thread is still at it";
  gate_->Open();
  EXPECT_TRUE(Eventually([&] { return workers.counters().done == 1; }));
}

TEST_F(QuestionThreadsTest, KeepsASlowFileSystemFromTakingAllThreads) {
  QuestionThreads workers(clock_, {.threads = 4, .per_file_system = 2});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(workers.Post(kHung, kPatience, Hang(), ends_.Note()));
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
  EXPECT_EQ(workers.counters().waiting, 8);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(10), std::vector(10, QuestionEnd::kDone));
}

TEST_F(QuestionThreadsTest, DoesSmallJobsWhileLargeOnesOfTheirFileSystemWait) {
  QuestionThreads workers(clock_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(workers.Post(kLocal, kPatience, HangForLong(), ends_.Note()));
  }
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
  EXPECT_EQ(workers.counters().waiting, 2);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(3), std::vector(3, QuestionEnd::kDone));
}

TEST_F(QuestionThreadsTest, DoesSmallJobsWhileLargeOnesOfAllFileSystemsWait) {
  QuestionThreads workers(clock_);
  for (uint64_t busy = 10; busy < 20; ++busy) {
    ASSERT_TRUE(workers.Post(busy, kPatience, HangForLong(), ends_.Note()));
  }
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
  EXPECT_EQ(workers.counters().waiting, 10 - QuestionThreads::Options().large);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(10), std::vector(10, QuestionEnd::kDone));
}

TEST_F(QuestionThreadsTest, BeginsALargeJobBeforeSmallOnesThatCameLater) {
  QuestionThreads workers(clock_, {.per_file_system = 2});
  const auto first = std::make_shared<Gate>();
  const auto pass_first = [first] { first->Pass(); };
  ASSERT_TRUE(workers.Post(kLocal, kPatience, {pass_first, kLarge}, ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kPatience, Hang(), ends_.Note())) << "leaves room for one";
  ASSERT_TRUE(workers.Post(kLocal, kPatience, order_.Note(1, kLarge), ends_.Note()));
  for (int number = 2; number < 9; ++number) {
    ASSERT_TRUE(workers.Post(kLocal, kPatience, order_.Note(number), ends_.Note()));
  }
  first->Open();
  EXPECT_EQ(ends_.WaitFor(9), std::vector(9, QuestionEnd::kDone));
  EXPECT_EQ(order_.done(), (std::vector{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(QuestionThreadsTest, BeginsWhatIsDueFirst) {
  QuestionThreads workers(clock_, {.threads = 2, .per_file_system = 1});
  ASSERT_TRUE(workers.Post(kLocal, kPatience, Hang(), ends_.Note()));
  ASSERT_TRUE(Eventually([&] { return workers.counters().waiting == 0; }));
  ASSERT_TRUE(workers.Post(kLocal, kPatience, order_.Note(1), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kPatience / 2, order_.Note(2), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kPatience / 4, order_.Note(3), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kPatience / 2, order_.Note(4), ends_.Note()));
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(5), std::vector(5, QuestionEnd::kDone));
  EXPECT_EQ(order_.done(), (std::vector{3, 2, 4, 1}));
}

TEST_F(QuestionThreadsTest, LetsShorterJobsPassForAsLongOnlyAsTheyAreShorter) {
  QuestionThreads workers(clock_, {.threads = 2, .per_file_system = 1});
  ASSERT_TRUE(workers.Post(kLocal, kPatience, Hang(), ends_.Note()));
  ASSERT_TRUE(workers.Post(kLocal, kPatience, order_.Note(1), ends_.Note()));
  const MonotonicTime later = After(MonotonicNow(), milliseconds(1));
  ASSERT_TRUE(Eventually([later] { return later < MonotonicNow(); }));
  ASSERT_TRUE(workers.Post(kLocal, kPatience - milliseconds(1), order_.Note(2), ends_.Note()));
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(3), std::vector(3, QuestionEnd::kDone));
  EXPECT_EQ(order_.done(), (std::vector{1, 2}));
}

TEST_F(QuestionThreadsTest, RefusesWhatWaitsForAFileSystemThatIsLateAndNothingElse) {
  QuestionThreads workers(clock_, {.per_file_system = 1});
  ASSERT_TRUE(workers.Post(kHung, kPatience, HangAndBeLate(), ends_.Note()));
  ASSERT_TRUE(Eventually([&] { return workers.counters().waiting == 0; }));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(workers.Post(
        kHung, kPatience, [] {}, ends_.Note()));
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(4), (std::vector{QuestionEnd::kLate, QuestionEnd::kRefused,
                                           QuestionEnd::kRefused, QuestionEnd::kRefused}));
  EXPECT_EQ(workers.counters().late, 1);
  EXPECT_EQ(workers.counters().refused, 3);
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
  EXPECT_EQ(workers.Run(kHung, kPatience, kPatience, [] {}), QuestionEnd::kDone)
      << "may be tried at once";
}

TEST_F(QuestionThreadsTest, AsksAFileSystemThatWasLateOneThingUntilItAnswers) {
  QuestionThreads workers(clock_, {.threads = 8, .per_file_system = 3});
  ASSERT_EQ(workers.Run(kHung, kPatience, kPatience, [] { return QuestionEnd::kLate; }),
            QuestionEnd::kLate);
  const auto first = std::make_shared<Gate>();
  const auto pass_first = [first] { first->Pass(); };
  ASSERT_TRUE(workers.Post(kHung, kPatience, pass_first, ends_.Note()));
  EXPECT_FALSE(workers.Post(kHung, kPatience, Hang(), ends_.Note()));
  first->Open();
  EXPECT_EQ(ends_.WaitFor(1), std::vector{QuestionEnd::kDone});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(workers.Post(kHung, kPatience, Hang(), ends_.Note()));
  EXPECT_TRUE(Eventually([&] { return workers.counters().waiting == 1; })) << "it has three again";
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(5), std::vector(5, QuestionEnd::kDone));
}

TEST_F(QuestionThreadsTest, GivesThoseThatWereLateAQuarterOfTheThreads) {
  QuestionThreads workers(clock_, {.threads = 8});
  for (uint64_t late = 10; late < 20; ++late) {
    for (int time = 0; time < 2; ++time) {
      ASSERT_EQ(workers.Run(late, kPatience, kPatience, [] { return QuestionEnd::kLate; }),
                QuestionEnd::kLate);
    }
  }
  for (uint64_t late = 10; late < 20; ++late) {
    ASSERT_TRUE(workers.Post(late, kPatience, HangAndBeLate(), ends_.Note()));
  }
  ASSERT_EQ(workers.Run(99, kPatience, kPatience, [] { return QuestionEnd::kLate; }),
            QuestionEnd::kLate)
      << "a new one";
  ASSERT_EQ(workers.Run(99, kPatience, kPatience, [] {}), QuestionEnd::kDone) << "late but once";
  EXPECT_EQ(workers.counters().waiting, 8);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(10), std::vector(10, QuestionEnd::kLate));
}

TEST_F(QuestionThreadsTest, KeepsPlacesToWaitForThoseThatAnswered) {
  QuestionThreads workers(clock_, {.per_file_system = 1, .max_waiting = 16});
  ASSERT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
  ASSERT_TRUE(workers.Post(kLocal, kPatience, Hang(), ends_.Note()));
  ASSERT_TRUE(Eventually([&] { return workers.counters().waiting == 0; }));
  for (uint64_t hung = 10; workers.Post(hung, kPatience, Hang(), ends_.Note()); ++hung) {
    ASSERT_LT(hung, 40);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(workers.Post(
        kLocal, kPatience, [] {}, ends_.Note()))
        << i;
  }
  gate_->Open();
}

TEST_F(QuestionThreadsTest, ServesThoseThatAnsweredHoweverManyNewOnesDoNot) {
  QuestionThreads workers(clock_, {.threads = 8});
  ASSERT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
  for (uint64_t hung = 10; hung < 30; ++hung) {
    ASSERT_TRUE(workers.Post(hung, kPatience / 2, HangAndBeLate(), ends_.Note()));
  }
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
  EXPECT_EQ(workers.counters().waiting, 20 - 6);
  gate_->Open();
  EXPECT_EQ(ends_.WaitFor(20), std::vector(20, QuestionEnd::kLate));
}

TEST_F(QuestionThreadsTest, RefusesWhatDoesNotFit) {
  QuestionThreads workers(clock_, {.threads = 3, .per_file_system = 1, .max_waiting = 8});
  int posted = 0;
  while (workers.Post(kHung, kPatience, Hang(), ends_.Note())) ++posted;
  EXPECT_GE(posted, 2);
  EXPECT_LE(posted, 3) << "one that runs and a quarter of the waiting ones";
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [] {}), QuestionEnd::kDone);
}

TEST_F(QuestionThreadsTest, EndsWhileJobsAreUnderWay) {
  auto ended = std::make_shared<std::atomic<int>>(0);
  {
    QuestionThreads workers(clock_);
    const auto note = [ended](QuestionEnd /*work*/) { ++*ended; };
    ASSERT_TRUE(workers.Post(kLocal, kPatience, Hang(), note));
    ASSERT_TRUE(workers.Post(kLocal, kPatience, Hang(), note));
    ASSERT_TRUE(workers.Post(kLocal, kPatience, Hang(), note)) << "waits for the others";
  }
  const std::weak_ptr<Gate> held = gate_;
  gate_->Open();
  gate_.reset();
  EXPECT_TRUE(Eventually([&] { return held.expired(); })) << "the threads end";
  gate_ = std::make_shared<Gate>();
  EXPECT_EQ(*ended, 0) << "nobody is told any more";
}

TEST_F(QuestionThreadsTest, OwnsAJobNoLongerThanItRuns) {
  QuestionThreads workers(clock_);
  auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> held = owned;
  EXPECT_EQ(workers.Run(kLocal, kPatience, kPatience, [owned] {}), QuestionEnd::kDone);
  owned.reset();
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace pyrometer
