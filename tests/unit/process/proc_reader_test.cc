// SPDX-License-Identifier: Apache-2.0
// Processes that do not say what they have mapped, since they hold the lock of their memory.
#include "process/proc_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/process/fake_machine.h"
#include "tests/unit/process/hanging_files.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr UserId kUser{1000};
constexpr std::chrono::minutes kAmple(1);

class ProcReaderTest : public testing::Test {
 protected:
  ProcReaderTest() { Add(100); }
  ~ProcReaderTest() override { files_->AnswerForProcesses(); }

  void Add(uint32_t pid) {
    machine_.AddProcess(pid, 5, "1000-5000 r-xp 00001000 08:01 7 /lib/a\n");
  }
  ProcessDirectory DirectoryOf(uint32_t pid) {
    return *ProcessDirectory::Open(machine_.procfs(), Pid(pid));
  }
  // Waits for it, or nearly not.
  Result<ProcMaps> Read(uint32_t pid, UserId user = kUser, uint64_t start = 5) {
    patience_.BeginBurst(is_patient_ ? std::chrono::nanoseconds(kAmple) : milliseconds(1));
    const ProcessDirectory directory = DirectoryOf(pid);
    return reader_.Mappings({directory, {Pid(pid), StartTime(start)}, user});
  }
  bool IsLate(uint32_t pid, UserId user = kUser) {
    const Result<ProcMaps> maps = Read(pid, user);
    return !maps && maps.error().code() == ErrorCode::kExhausted;
  }
  Result<UniqueFd> OpenMapped(uint32_t pid) {
    patience_.BeginBurst(is_patient_ ? std::chrono::nanoseconds(kAmple) : milliseconds(1));
    const ProcessDirectory directory = DirectoryOf(pid);
    const FileMapping range{Address(0x1000), Address(0x5000), FileOffset(0)};
    return reader_.OpenMapped({directory, {Pid(pid), StartTime(5)}, kUser}, range);
  }
  // A question to 100 whose answer is not waited for.
  void AskInVain() {
    is_patient_ = false;
    files_->HangOnProcesses();
    ASSERT_TRUE(IsLate(100));
  }
  std::vector<ProcReader::Answer> AwaitAnswers() {
    std::vector<ProcReader::Answer> answers;
    EXPECT_TRUE(Eventually([&] {
      answers = reader_.TakeAnswers();
      return !answers.empty() || !reader_.awaits_answers();
    }));
    return answers;
  }
  // After a pause.
  void ExpectAskedAgain() {
    EXPECT_THAT(reader_.Due(), IsEmpty());
    clock_.Advance(milliseconds(50));
    EXPECT_THAT(reader_.Due(), ElementsAre(Pid(100)));
    EXPECT_TRUE(IsLate(100));
    EXPECT_EQ(AwaitAnswers().size(), 1);
  }
  MappingEvent Mapped(MonotonicTime when, uint64_t start, uint64_t end) const {
    MappingEvent event{when, Pid(100), {Address(start), Address(end), FileOffset(0)}, {}};
    event.file.path = "/lib/new";
    return event;
  }
  // Start and path of each.
  static std::vector<std::pair<uint64_t, std::string>> StartsOf(const ProcMaps& maps) {
    std::vector<std::pair<uint64_t, std::string>> starts;
    for (const ProcMapping& m : maps.mappings) {
      starts.emplace_back(m.range.start.value(), m.file.path);
    }
    return starts;
  }

  FakeClock clock_;
  FakeMachine machine_;
  std::shared_ptr<HangingFiles> files_ = std::make_shared<HangingFiles>();
  FileInspections patience_{{}, clock_, files_, nullptr};
  ProcReader::Options options_{.limit = kAmple, .longest_limit = 4 * kAmple, .questions = 4};
  ProcReader reader_{options_, clock_, patience_};
  bool is_patient_ = true;
};

TEST_F(ProcReaderTest, ReadsWhatAnswers) {
  const Result<ProcMaps> maps = Read(100);
  ASSERT_TRUE(maps);
  EXPECT_EQ(maps->mappings.size(), 1);
  EXPECT_EQ(reader_.late() + reader_.unanswered(), 0);
  EXPECT_FALSE(reader_.awaits_answers());
}

TEST_F(ProcReaderTest, TakesAnAnswerWhenItComes) {
  AskInVain();
  EXPECT_EQ(reader_.unanswered(), 1);
  EXPECT_TRUE(reader_.awaits_answers());
  EXPECT_TRUE(Eventually([&] { return files_->questions_to_processes() == 1; }));
  EXPECT_TRUE(IsLate(100));
  EXPECT_THAT(reader_.Due(), IsEmpty());
  files_->AnswerForProcesses();
  const std::vector<ProcReader::Answer> answers = AwaitAnswers();
  ASSERT_EQ(answers.size(), 1);
  EXPECT_EQ(answers[0].process.pid, Pid(100));
  ASSERT_TRUE(answers[0].maps);
  EXPECT_EQ(answers[0].maps->mappings.size(), 1);
  EXPECT_EQ(reader_.late() + reader_.unanswered(), 0);
  EXPECT_FALSE(reader_.awaits_answers());
  EXPECT_EQ(files_->questions_to_processes(), 1) << "it had been asked";
  is_patient_ = true;
  EXPECT_TRUE(Read(100));
}

TEST_F(ProcReaderTest, WaitsNoLongerThanTheBurstHasPatience) {
  AskInVain();
  EXPECT_EQ(patience_.left().count(), 0);
}

// Whoever has many of them would else take the patience that others need.
TEST_F(ProcReaderTest, WaitsLittleForOthersOfAUserWhoseProcessDoesNotAnswer) {
  Add(200);
  Add(300);
  AskInVain();
  patience_.BeginBurst(kAmple);
  const ProcessDirectory directory = DirectoryOf(200);
  EXPECT_FALSE(reader_.Mappings({directory, {Pid(200), StartTime(5)}, kUser}));
  EXPECT_GT(patience_.left(), kAmple / 2);
  files_->AnswerForProcesses();
  is_patient_ = true;
  EXPECT_TRUE(Read(300, UserId(2000)));
}

TEST_F(ProcReaderTest, AsksAgainAfterPausesAndWithMoreTime) {
  files_->RefuseForProcesses();
  EXPECT_TRUE(IsLate(100));
  uint64_t late = 1;
  auto limit = files_->limit_for_processes();
  for (const seconds pause : {seconds(1), seconds(2), seconds(4)}) {
    EXPECT_EQ(reader_.late(), late);
    const int asked = files_->questions_to_processes();
    clock_.Advance(pause - milliseconds(1));
    EXPECT_THAT(reader_.Due(), IsEmpty());
    EXPECT_TRUE(IsLate(100));
    EXPECT_EQ(files_->questions_to_processes(), asked) << "it is not asked";
    clock_.Advance(milliseconds(1));
    EXPECT_THAT(reader_.Due(), ElementsAre(Pid(100)));
    EXPECT_TRUE(IsLate(100)) << "and not waited for";
    EXPECT_THAT(AwaitAnswers(), IsEmpty());
    EXPECT_EQ(files_->questions_to_processes(), asked + 1);
    EXPECT_EQ(files_->limit_for_processes(), std::min(2 * limit, options_.longest_limit));
    limit = files_->limit_for_processes();
    ++late;
  }
  files_->AnswerForProcesses();
  clock_.Advance(seconds(8));
  EXPECT_TRUE(IsLate(100));
  EXPECT_EQ(AwaitAnswers().size(), 1);
  EXPECT_EQ(reader_.unanswered(), 0);
}

TEST_F(ProcReaderTest, TakesAWorkerThatDiesForNoAnswer) {
  files_->RefuseForProcesses(ErrorCode::kIo);
  EXPECT_TRUE(IsLate(100));
  EXPECT_EQ(reader_.unanswered(), 1);
}

TEST_F(ProcReaderTest, AsksOthersWhileOneDoesNotAnswer) {
  Add(200);
  files_->RefuseForProcesses();
  EXPECT_TRUE(IsLate(100));
  files_->AnswerForProcesses();
  EXPECT_TRUE(Read(200, UserId(2000)));
  EXPECT_TRUE(IsLate(100)) << "its pause is not over";
}

TEST_F(ProcReaderTest, AsksAProcessThatTookItsPid) {
  files_->RefuseForProcesses();
  EXPECT_TRUE(IsLate(100));
  files_->AnswerForProcesses();
  EXPECT_TRUE(Read(100, kUser, 6));
  EXPECT_EQ(reader_.unanswered(), 0);
}

// An exec gives it another memory with another lock. But a scan hears of execs that were before.
TEST_F(ProcReaderTest, ForgetsAProcessThatRunsAnotherProgramSince) {
  const MonotonicTime before = clock_.Now();
  clock_.Advance(seconds(1));
  AskInVain();
  reader_.ForgetBefore(Pid(100), before);
  EXPECT_EQ(reader_.unanswered(), 1);
  clock_.Advance(seconds(1));
  reader_.ForgetBefore(Pid(100), clock_.Now());
  EXPECT_EQ(reader_.unanswered(), 0);
  files_->AnswerForProcesses();
  EXPECT_THAT(AwaitAnswers(), IsEmpty()) << "it is of another program";
}

TEST_F(ProcReaderTest, AddsWhatWasMappedWhileItWasAsked) {
  AskInVain();
  const MonotonicTime asked = clock_.Now();
  reader_.Note(Mapped(asked, 0x1000, 0x5000));  // which it tells of, or has replaced since
  clock_.Advance(seconds(1));
  reader_.Note(Mapped(clock_.Now(), 0x2000, 0x3000));
  reader_.Note(Mapped(clock_.Now(), 0x8000, 0x9000));
  files_->AnswerForProcesses();
  const std::vector<ProcReader::Answer> answers = AwaitAnswers();
  ASSERT_EQ(answers.size(), 1);
  EXPECT_EQ(answers[0].asked, asked);
  ASSERT_TRUE(answers[0].maps);
  EXPECT_THAT(StartsOf(*answers[0].maps),
              ElementsAre(std::pair(0x1000, "/lib/a"), std::pair(0x2000, "/lib/new"),
                          std::pair(0x3000, "/lib/a"), std::pair(0x8000, "/lib/new")));
}

TEST_F(ProcReaderTest, AsksAgainIfTooMuchWasMappedMeanwhile) {
  AskInVain();
  clock_.Advance(seconds(1));
  for (uint64_t i = 0; i < 200; ++i) {
    reader_.Note(Mapped(clock_.Now(), 0x10000 + i * 0x1000, 0x11000 + i * 0x1000));
  }
  files_->AnswerForProcesses();
  EXPECT_THAT(AwaitAnswers(), IsEmpty());
  ExpectAskedAgain();
}

TEST_F(ProcReaderTest, AsksAgainIfSomethingWasLostMeanwhile) {
  AskInVain();
  reader_.NoteLost();
  files_->AnswerForProcesses();
  EXPECT_THAT(AwaitAnswers(), IsEmpty());
  ExpectAskedAgain();
}

TEST_F(ProcReaderTest, AsksAgainIfItsAnswerCouldNotBeUsed) {
  AskInVain();
  files_->AnswerForProcesses();
  ASSERT_EQ(AwaitAnswers().size(), 1);
  reader_.AskLater({Pid(100), StartTime(5)});
  ExpectAskedAgain();
}

TEST_F(ProcReaderTest, TakesItsTimeWithAProcessWhoseAnswerIsNeverEnough) {
  AskInVain();
  files_->AnswerForProcesses();
  for (const milliseconds pause : {milliseconds(50), milliseconds(100), milliseconds(200)}) {
    const std::vector<ProcReader::Answer> answers = AwaitAnswers();
    ASSERT_EQ(answers.size(), 1);
    patience_.BeginBurst(seconds(0));
    const ProcessDirectory directory = DirectoryOf(100);
    EXPECT_FALSE(reader_.OpenMapped({directory, {Pid(100), StartTime(5)}, kUser}, {}));
    reader_.AskAgainLater(answers[0]);
    clock_.Advance(pause);
    EXPECT_THAT(reader_.Due(), IsEmpty());
    clock_.Advance(pause);
    EXPECT_THAT(reader_.Due(), ElementsAre(Pid(100)));
    EXPECT_TRUE(IsLate(100));
  }
}

// What it maps before the answer comes may be told after it.
TEST_F(ProcReaderTest, HandsOutAnAnswerWithTheCallAfterThatWhichFoundIt) {
  AskInVain();
  const MonotonicTime asked = clock_.Now();
  files_->AnswerForProcesses();
  std::vector<ProcReader::Answer> answers;
  bool was_noted = false;
  EXPECT_TRUE(Eventually([&] {
    answers = reader_.TakeAnswers();
    if (answers.empty() && !was_noted)
      reader_.Note(Mapped(After(asked, seconds(1)), 0x8000, 0x9000));
    was_noted = true;
    return !answers.empty();
  }));
  ASSERT_TRUE(answers.at(0).maps);
  EXPECT_EQ(answers[0].maps->mappings.size(), 2);
}

TEST_F(ProcReaderTest, GivesAUserAsManyQuestionsAsAreLeftFree) {
  is_patient_ = false;
  files_->HangOnProcesses();
  for (const uint32_t pid : {200, 300, 400, 500}) Add(pid);
  for (const uint32_t pid : {100, 200, 300}) EXPECT_TRUE(IsLate(pid));
  for (const uint32_t pid : {400, 500}) EXPECT_TRUE(IsLate(pid, UserId(2000)));
  EXPECT_TRUE(Eventually([&] { return files_->questions_to_processes() == 3; }));
  clock_.Advance(milliseconds(50));
  EXPECT_THAT(reader_.Due(), ::testing::UnorderedElementsAre(Pid(300), Pid(500)));
  EXPECT_EQ(reader_.late(), 0) << "it was not asked";
  files_->AnswerForProcesses();
  EXPECT_TRUE(Eventually([&] {
    reader_.TakeAnswers();
    return !reader_.awaits_answers();
  }));
  EXPECT_TRUE(IsLate(300));
  EXPECT_EQ(AwaitAnswers().size(), 1);
}

TEST_F(ProcReaderTest, OpensNoFileOfAProcessThatHasNotAnswered) {
  is_patient_ = false;
  files_->HangOnProcesses();
  EXPECT_FALSE(OpenMapped(100));
  EXPECT_TRUE(Eventually([&] { return files_->questions_to_processes() == 1; }));
  files_->AnswerForProcesses();
  is_patient_ = true;
  EXPECT_EQ(OpenMapped(100).error().code(), ErrorCode::kExhausted);
  EXPECT_EQ(files_->questions_to_processes(), 1);
  clock_.Advance(milliseconds(50));
  EXPECT_THAT(reader_.Due(), ElementsAre(Pid(100))) << "it may have missed something";
  EXPECT_EQ(reader_.late(), 0) << "that it was late nobody knows";
}

TEST_F(ProcReaderTest, OpensFilesLaterIfTheBurstHasNoPatience) {
  patience_.BeginBurst(seconds(0));
  const ProcessDirectory directory = DirectoryOf(100);
  EXPECT_FALSE(reader_.OpenMapped({directory, {Pid(100), StartTime(5)}, kUser},
                                  {Address(0x1000), Address(0x5000), FileOffset(0)}));
  EXPECT_EQ(files_->questions_to_processes(), 0);
  clock_.Advance(milliseconds(50));
  EXPECT_THAT(reader_.Due(), ElementsAre(Pid(100)));
  EXPECT_EQ(reader_.late(), 0);
}

TEST_F(ProcReaderTest, TellsThatAProcessIsGone) {
  const ProcessDirectory directory = DirectoryOf(100);
  machine_.RemoveProcess(100);
  patience_.BeginBurst(kAmple);
  const Result<ProcMaps> maps = reader_.Mappings({directory, {Pid(100), StartTime(5)}, kUser});
  ASSERT_FALSE(maps);
  EXPECT_TRUE(IsGone(maps.error()));
  EXPECT_EQ(reader_.unanswered(), 0);
}

TEST_F(ProcReaderTest, EndsWhileAProcessDoesNotAnswer) {
  files_->HangOnProcesses();
  const ProcessDirectory directory = DirectoryOf(100);
  patience_.BeginBurst(milliseconds(1));
  {
    ProcReader reader(options_, clock_, patience_);
    EXPECT_FALSE(reader.Mappings({directory, {Pid(100), StartTime(5)}, kUser}));
    EXPECT_TRUE(Eventually([&] { return files_->questions_to_processes() == 1; }));
  }
  files_->AnswerForProcesses();  // to nobody
}

}  // namespace
}  // namespace pyrometer
