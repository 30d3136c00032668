// SPDX-License-Identifier: Apache-2.0
// Processes that do not say what they have mapped, since they hold the lock of their memory.
#include "process/proc_reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tests/shared/fake_clock.h"
#include "tests/unit/process/fake_machine.h"
#include "tests/unit/process/hanging_files.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ProcReaderTest : public testing::Test {
 protected:
  ProcReaderTest() { Add(100); }

  void Add(uint32_t pid) {
    machine_.AddProcess(pid, 5, "7f0000000000-7f0000002000 r-xp 00001000 08:01 7 /lib/a\n");
  }
  Result<ProcMaps> Read(uint32_t pid) {
    return reader_.Mappings(*ProcessDirectory::Open(machine_.procfs(), Pid(pid)));
  }
  bool IsLate(uint32_t pid) {
    const Result<ProcMaps> maps = Read(pid);
    return !maps && maps.error().code() == ErrorCode::kExhausted;
  }
  std::chrono::nanoseconds SinceBegin() const { return Between(begin_, clock_.Now()); }

  FakeClock clock_;
  MonotonicTime begin_ = clock_.Now();
  FakeMachine machine_;
  std::shared_ptr<HangingFiles> files_ = std::make_shared<HangingFiles>();
  ProcReader reader_{{}, clock_, files_};
};

TEST_F(ProcReaderTest, ReadsWhatAnswers) {
  const Result<ProcMaps> maps = Read(100);
  ASSERT_TRUE(maps);
  EXPECT_EQ(maps->mappings.size(), 1);
  EXPECT_EQ(reader_.late() + reader_.unanswered(), 0);
}

TEST_F(ProcReaderTest, WaitsForAMomentAndAsksAgainAfterPauses) {
  files_->HangOnProcesses(clock_);
  EXPECT_TRUE(IsLate(100));
  EXPECT_EQ(SinceBegin(), ProcReader::Options().patience);
  EXPECT_EQ(reader_.unanswered(), 1);
  for (const seconds pause : {seconds(1), seconds(2), seconds(4)}) {
    const int asked = files_->questions_to_processes();
    clock_.Advance(pause - milliseconds(1));
    EXPECT_TRUE(reader_.Due().empty());
    EXPECT_TRUE(IsLate(100));
    EXPECT_EQ(files_->questions_to_processes(), asked) << "it is not asked";
    clock_.Advance(milliseconds(1));
    EXPECT_EQ(reader_.Due(), std::vector{Pid(100)});
    EXPECT_TRUE(IsLate(100));
    EXPECT_EQ(files_->questions_to_processes(), asked + 1);
  }
  EXPECT_EQ(reader_.late(), 4);
  files_->AnswerForProcesses();
  clock_.Advance(seconds(8));
  EXPECT_TRUE(Read(100));
  EXPECT_EQ(reader_.unanswered(), 0);
  EXPECT_TRUE(Read(100));
}

TEST_F(ProcReaderTest, AsksOthersWhileOneDoesNotAnswer) {
  Add(200);
  files_->HangOnProcesses(clock_);
  EXPECT_TRUE(IsLate(100));
  files_->AnswerForProcesses();
  EXPECT_TRUE(Read(200));
  EXPECT_TRUE(IsLate(100)) << "its pause is not over";
}

TEST_F(ProcReaderTest, AsksAProcessThatTookItsPid) {
  files_->HangOnProcesses(clock_);
  EXPECT_TRUE(IsLate(100));
  files_->AnswerForProcesses();
  reader_.Forget(Pid(100));
  EXPECT_TRUE(Read(100));
}

TEST_F(ProcReaderTest, HasLittlePatienceWhereManyDoNotAnswer) {
  constexpr uint32_t kMany = 40;
  files_->HangOnProcesses(clock_);
  for (uint32_t pid = 200; pid < 200 + kMany; ++pid) {
    Add(pid);
    EXPECT_TRUE(IsLate(pid));
  }
  const ProcReader::Options options;
  EXPECT_LT(SinceBegin(), 2 * options.in_vain + kMany * options.short_patience);
  EXPECT_LE(reader_.Due().size(), 16U) << "some at a time";
  // It comes back.
  clock_.Advance(seconds(10));
  const MonotonicTime before = clock_.Now();
  EXPECT_TRUE(IsLate(100));
  EXPECT_EQ(Between(before, clock_.Now()), options.patience);
}

TEST_F(ProcReaderTest, TellsThatAProcessIsGone) {
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(machine_.procfs(), Pid(100));
  ASSERT_TRUE(directory);
  machine_.RemoveProcess(100);
  const Result<ProcMaps> maps = reader_.Mappings(*directory);
  ASSERT_FALSE(maps);
  EXPECT_TRUE(IsGone(maps.error()));
  EXPECT_EQ(reader_.unanswered(), 0);
}

}  // namespace
}  // namespace pyrometer
