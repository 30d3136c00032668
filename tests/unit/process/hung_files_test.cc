// SPDX-License-Identifier: Apache-2.0
// What ProcessHistory knows while file systems do not answer.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "process/process_history.h"
#include "tests/shared/eventually.h"
#include "tests/unit/process/hanging_files.h"
#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes kAmple(1);

// What answers is waited for so long that it may take its time; what hangs costs that once.
class HungFilesTest : public ProcessHistoryTest {
 protected:
  HungFilesTest() { MakeHistory(kAmple); }
  ~HungFilesTest() override { files_->Answer(); }

  void MakeHistory(std::chrono::nanoseconds limit) {
    hung_history_.reset();
    hung_history_ = std::make_unique<ProcessHistory>(
        ProcessHistory::Options{.clock = clock_,
                                .procfs = machine_.procfs(),
                                .files = files_,
                                .inspections = {.patience = milliseconds(50),
                                                .patience_in_all = milliseconds(100),
                                                .limit = limit},
                                .reader = {.limit = kAmple}},
        inspector_, sink_);
  }

  void HangOn(const std::string& path) {
    struct stat status {};
    ASSERT_EQ(::stat((machine_.root() + path).c_str(), &status), 0);
    files_->HangOn({status.st_dev, status.st_ino});
  }

  ProcessHistory& history() { return *hung_history_; }

  void ScanAll() {
    const TaskRecord task{Pid(100), Tid(100), StartTime(5), ExecId(3), clock_.Now()};
    ASSERT_TRUE(history().Scan(std::span(&task, 1)).has_value());
  }
  void AwaitProcesses() {
    ASSERT_TRUE(Eventually([this] { return history().counters().processes_unanswered == 0; }));
  }
  void Happens(ProcessEvent event) { history().Apply(std::span(&event, 1)); }

  bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kAmple;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(1));
      clock_.Advance(std::chrono::seconds(1));  // for what is to be asked again
      history().Apply({});
    }
    return true;
  }
  bool IsIdentified() {
    return Eventually([this] { return history().counters().objects_waiting == 0; });
  }

  Frame FrameOf(Frame frame) {
    return OnlyFrameOf(history().Resolve(OneFrameWindow(kKey, ExecId(3), frame, Now())).window);
  }
  std::string PathOf(Frame frame) {
    if (frame.kind() != Frame::Kind::kObject) return "address";
    return fmt::format("{}+{:#x}", history().Object(frame.object())->path, frame.offset().value());
  }
  std::string PathAt(uint64_t address) { return PathOf(FrameOf(Frame::User(Address(address)))); }

  std::shared_ptr<HangingFiles> files_ = std::make_shared<HangingFiles>();
  std::unique_ptr<ProcessHistory> hung_history_;
};

TEST_F(HungFilesTest, KnowsTheFileAndTheOffsetWhileItDoesNotAnswer) {
  HangOn("/lib/a");
  ScanAll();
  EXPECT_EQ(history().counters().objects_waiting, 1);
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x1010") << "its offset in the file";
  EXPECT_FALSE(history().Object(sink_.by_pid[Pid(100)].mappings[0].mapping.object)->was_opened);
}

TEST_F(HungFilesTest, KnowsTheObjectFromTheMomentItAnswers) {
  HangOn("/lib/a");
  ScanAll();
  const int publishes = sink_.publishes;
  files_->Answer();
  ASSERT_TRUE(IsIdentified());
  EXPECT_EQ(sink_.publishes, publishes + 1);
  const ObjectMapping published = sink_.by_pid[Pid(100)].mappings[0].mapping;
  EXPECT_TRUE(history().Object(published.object)->was_opened);
  EXPECT_EQ(published.ToElfAddress(Address(kStart)), ElfAddress(0x3000));
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
}

TEST_F(HungFilesTest, NamesWhatWasSeenBeforeItAnswered) {
  HangOn("/lib/a");
  ScanAll();
  const Frame before = FrameOf(Frame::User(Address(kStart + 0x10)));
  files_->Answer();
  ASSERT_TRUE(IsIdentified());
  EXPECT_EQ(PathOf(FrameOf(before)), "/lib/a+0x3010");
}

TEST_F(HungFilesTest, GivesAllWhoMapItTheSameObject) {
  HangOn("/lib/a");
  ScanAll();
  Happens(ForkEvent{Now(), Pid(200), Tid(200), Pid(100)});
  machine_.AddProcess(300, BootClock::Now().ToStartTime(Now()).value(), "");
  Happens(ForkEvent{Now(), Pid(300), Tid(300), Pid(100)});
  Happens(At(Mapping(300, "/lib/a", 'a'), kStart + 0x10000, kStart + 0x12000));
  EXPECT_EQ(history().counters().objects_waiting, 1);
  files_->Answer();
  ASSERT_TRUE(IsIdentified());
  const ObjectId object = sink_.by_pid[Pid(100)].mappings[0].mapping.object;
  EXPECT_TRUE(history().Object(object)->was_opened);
  EXPECT_EQ(sink_.by_pid[Pid(200)].mappings[0].mapping.object, object);
  ASSERT_EQ(sink_.by_pid[Pid(300)].mappings.size(), 2);
  EXPECT_EQ(sink_.by_pid[Pid(300)].mappings[0].mapping.object, object);
  EXPECT_EQ(sink_.by_pid[Pid(300)].mappings[1].mapping.object, object);
}

TEST_F(HungFilesTest, KnowsOtherFilesMeanwhile) {
  HangOn("/lib/a");
  ScanAll();
  machine_.AddProcess(
      400, 9, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  ScanAll();
  ASSERT_TRUE(Eventually([this] { return history().counters().objects_waiting == 1; }));
  const ProcessKey other{Pid(400), StartTime(9)};
  const Window window =
      history()
          .Resolve(OneFrameWindow(other, ExecId(0), Frame::User(Address(kStart)), Now()))
          .window;
  EXPECT_EQ(PathOf(OnlyFrameOf(window)), "/lib/b+0x3000");
}

TEST_F(HungFilesTest, RemembersTheNameThatLedToIt) {
  HangOn("/lib/a");
  ScanAll();
  files_->Answer();
  ASSERT_TRUE(IsIdentified());
  const int questions = files_->questions();
  machine_.RemoveProcess(100);
  Happens(At(Mapping(100, "/lib/a", 'a'), kStart + 0x10000, kStart + 0x12000));
  EXPECT_EQ(PathAt(kStart + 0x10000), "/lib/a+0x3000");
  EXPECT_EQ(files_->questions(), questions);
}

TEST_F(HungFilesTest, AsksAgainAfterItWasLate) {
  MakeHistory(milliseconds(1));
  HangOn("/lib/a");
  ScanAll();
  ASSERT_TRUE(Eventually([this] { return history().counters().file_questions_late > 0; }));
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x1010");
  files_->Answer();
  ASSERT_TRUE(IsIdentified());
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
}

// In a burst no file is waited for at all.
TEST_F(HungFilesTest, IsWaitedForInAScanOnlyIfThatMayTakeItsTime) {
  HangOn("/lib/b");
  ProcessHistory hasty({.clock = clock_,
                        .procfs = machine_.procfs(),
                        .files = files_,
                        .inspections = {.patience = milliseconds(0),
                                        .patience_in_all = milliseconds(0),
                                        .limit = kAmple}},
                       inspector_, sink_);
  ASSERT_TRUE(hasty.BeginScan({}, kAmple).has_value());
  EXPECT_TRUE(hasty.ContinueScan(milliseconds(0)));
  EXPECT_EQ(hasty.counters().objects_waiting, 0U);
  EXPECT_FALSE(hasty.ContinueScan(milliseconds(0)));
  machine_.AddProcess(
      400, 9, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/b") + "\n");
  ASSERT_TRUE(hasty.BeginScan({}).has_value());
  EXPECT_TRUE(hasty.ContinueScan(milliseconds(0)));
  EXPECT_TRUE(hasty.ContinueScan(milliseconds(0)));
  EXPECT_TRUE(Eventually([&] {
    hasty.Apply({});
    return hasty.counters().objects_waiting == 1;
  }));
}

TEST_F(HungFilesTest, IsWaitedForInWhatHappensMeanwhileToo) {
  ProcessHistory hasty({.clock = clock_,
                        .procfs = machine_.procfs(),
                        .files = files_,
                        .inspections = {.patience = milliseconds(0),
                                        .patience_in_all = milliseconds(0),
                                        .limit = kAmple}},
                       inspector_, sink_);
  ASSERT_TRUE(hasty.BeginScan({}, kAmple).has_value());
  const ProcessEvent mapped = At(Mapping(100, "/lib/a", 'a'), kStart, kStart + 0x2000);
  hasty.Apply(std::span(&mapped, 1));
  EXPECT_EQ(hasty.process_count(), 1U);
  EXPECT_EQ(hasty.counters().processes_unanswered, 0U);
  EXPECT_EQ(hasty.counters().objects_waiting, 0U);
}

TEST_F(HungFilesTest, EndsWhileAFileHangs) {
  HangOn("/lib/a");
  ScanAll();
  hung_history_.reset();
  EXPECT_GT(files_->questions(), 0);
}

// A process that holds the lock of its memory.
TEST_F(HungFilesTest, KnowsAProcessOnceItSaysWhatItHasMapped) {
  files_->HangOnProcesses();
  ScanAll();
  EXPECT_EQ(history().counters().processes_unanswered, 1);
  EXPECT_EQ(history().counters().processes_unreadable, 0) << "not yet";
  EXPECT_EQ(PathAt(kStart + 0x10), "address");
  EXPECT_TRUE(history().AwaitsAnswers());
  files_->AnswerForProcesses();
  AwaitProcesses();
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
  EXPECT_EQ(sink_.by_pid[Pid(100)].mappings.size(), 1U);
}

TEST_F(HungFilesTest, KnowsWhatItMappedMeanwhileToo) {
  files_->HangOnProcesses();
  ScanAll();
  Happens(At(Mapping(100, "/lib/b", 'b'), kStart + 0x10000, kStart + 0x12000));
  EXPECT_EQ(PathAt(kStart + 0x10010), "/lib/b+0x3010");
  files_->AnswerForProcesses();
  AwaitProcesses();
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
  EXPECT_EQ(PathAt(kStart + 0x10010), "/lib/b+0x3010");
  EXPECT_EQ(sink_.by_pid[Pid(100)].mappings.size(), 2U);
}

TEST_F(HungFilesTest, AsksAChildForWhatItCannotInherit) {
  files_->HangOnProcesses();
  ScanAll();
  const ForkEvent fork{Now(), Pid(200), Tid(200), Pid(100)};
  const StartTime start = BootClock::Now().ToStartTime(fork.when);
  machine_.AddProcess(
      200, start.value(),
      "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/a") + "\n");
  Happens(fork);
  EXPECT_EQ(history().counters().processes_unanswered, 2);
  files_->AnswerForProcesses();
  AwaitProcesses();
  EXPECT_EQ(sink_.by_pid[Pid(200)].mappings.size(), 1U);
}

TEST_F(HungFilesTest, AsksAgainAProcessThatCannotBeAsked) {
  files_->RefuseForProcesses();
  ScanAll();
  EXPECT_TRUE(Eventually([this] { return history().counters().processes_unreadable > 0; }));
  files_->AnswerForProcesses();
  AwaitProcesses();
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
}

// An exec may be told after the answer that has it.
TEST_F(HungFilesTest, TakesNoAnswerForWhatAnotherProgramHadMapped) {
  files_->HangOnProcesses();
  ScanAll();
  files_->AnswerForProcesses();
  ASSERT_TRUE(pyrometer::Eventually([this] { return files_->processes_answered() > 0; }));
  Happens(CommEvent{Now(), Pid(100), Tid(100), true, "new"});
  AwaitProcesses();
  EXPECT_EQ(PathAt(kStart + 0x10), "address");
}

// Nor for that of a program whose exec was lost.
TEST_F(HungFilesTest, AsksAgainIfAScanFindsAnotherProgram) {
  files_->HangOnProcesses();
  ScanAll();
  ASSERT_TRUE(pyrometer::Eventually([this] { return files_->questions_to_processes() == 1; }));
  const TaskRecord task{Pid(100), Tid(100), StartTime(5), ExecId(4), clock_.Now()};
  ASSERT_TRUE(history().Scan(std::span(&task, 1)).has_value());
  files_->AnswerForProcesses();
  AwaitProcesses();
  EXPECT_GE(files_->questions_to_processes(), 3) << "twice what it has mapped, then for its file";
  EXPECT_EQ(sink_.by_pid[Pid(100)].exec, ExecId(4));
  EXPECT_EQ(sink_.by_pid[Pid(100)].mappings.size(), 1U);
}

TEST_F(HungFilesTest, KeepsWhatItKnowsWhereNobodyHasTheTimeToAsk) {
  ScanAll();
  AwaitProcesses();
  ASSERT_EQ(::unlink((machine_.root() + "/lib/a").c_str()), 0);
  files_->HangOnProcesses();
  const int questions = files_->questions_to_processes();
  history().Recheck(kKey);
  files_->AnswerForProcesses();
  AwaitProcesses();
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
  EXPECT_EQ(files_->questions_to_processes(), questions + 1) << "not for its file again";
}

TEST_F(HungFilesTest, KnowsAFileByItsPathIfItsProcessDoesNotSayWhatItHasMapped) {
  ScanAll();
  AwaitProcesses();
  files_->HangOnProcesses();
  Happens(At(Mapping(100, "/lib/b", 'b'), kStart + 0x10000, kStart + 0x12000));
  EXPECT_EQ(PathAt(kStart + 0x10010), "/lib/b+0x3010");
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
  EXPECT_EQ(history().counters().processes_unanswered, 1);
  Happens(CommEvent{Now(), Pid(100), Tid(100), true, "new"});
  EXPECT_EQ(history().counters().processes_unanswered, 0) << "another memory, another lock";
}

TEST_F(HungFilesTest, KnowsAFileByItsPathIfItsProcessEndsWhileItIsAsked) {
  machine_.AddProcess(50, 1, "");  // has the same root directory, in another mount namespace
  files_->WhenAProcessIsAsked([this](const std::string& directory) {
    if (directory != machine_.proc() + "/100") return;
    std::filesystem::remove(machine_.proc() + "/100/root");
    std::filesystem::remove(machine_.proc() + "/100/ns/mnt");
  });
  ScanAll();
  EXPECT_EQ(PathAt(kStart + 0x10), "/lib/a+0x3010");
}

TEST_F(HungFilesTest, ForgetsAProcessThatDidNotAnswerAndHasEnded) {
  files_->HangOnProcesses();
  ScanAll();
  Happens(ExitEvent{Now(), Pid(100), Tid(100)});
  EXPECT_EQ(history().counters().processes_unanswered, 0);
}

}  // namespace
}  // namespace pyrometer
