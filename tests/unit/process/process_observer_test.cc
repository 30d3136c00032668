// SPDX-License-Identifier: Apache-2.0
#include "process/process_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LabelSet Label(const std::string& value) {
  return std::make_shared<const Labels>(Labels{{"service", value}});
}

// Labels each process with what its /proc says it is called, those that are gone with nothing new.
class RecordingObserver : public ProcessObserver {
 public:
  LabelSet OnProcess(const SeenProcess& process) override {
    const Result<ProcStat> stat = process.directory == nullptr ? Fail(ErrorCode::kNotFound, "gone")
                                                               : process.directory->Stat();
    seen.push_back(fmt::format("{} {}", process.key.pid.value(), stat ? stat->comm : "gone"));
    inherited.push_back(process.inherited ? process.inherited->at(0).second : "none");
    if (meanwhile) meanwhile();
    return stat ? Label(stat->comm) : process.inherited;
  }
  LabelSet OfUnknown(Pid pid, std::string_view comm) override {
    return Label(fmt::format("{} {}", pid.value(), comm));
  }
  void OnSamples(std::vector<Sample>& samples) override {
    std::erase_if(samples, [this](const Sample& sample) {
      return unwanted && sample.labels != nullptr && sample.labels->at(0).second == *unwanted;
    });
  }

  std::optional<std::string> unwanted;
  std::function<void()> meanwhile;  // happens while a process is seen
  std::vector<std::string> seen;
  std::vector<std::string> inherited;  // by each of them
};

class ProcessObserverTest : public ProcessHistoryTest {
 protected:
  ProcessObserverTest() : ProcessHistoryTest(&observer_) {}

  LabelSet LabelsOf(const ProcessKey& process) {
    Window window = OneFrameWindow(process, ExecId(3), Frame::User(Address(kStart)), Now());
    return history_.Resolve(std::move(window)).window.samples[0].labels;
  }
  std::string ServiceOf(const ProcessKey& process) {
    const LabelSet labels = LabelsOf(process);
    return labels == nullptr ? "none" : labels->at(0).second;
  }
  ProcessKey KeyOfLastFork(uint32_t pid) const {
    return {Pid(pid), BootClock::Now().ToStartTime(last_)};
  }

  static std::string StatOf(uint32_t pid, uint64_t start, const std::string& comm) {
    return fmt::format("{} ({}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n", pid, comm,
                       start);
  }

  RecordingObserver observer_;
};

TEST_F(ProcessObserverTest, SeesAProcessOnceAndItsSamplesHaveItsLabels) {
  Scan();
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake"));
  EXPECT_EQ(ServiceOf(kKey), "fake");
  EXPECT_EQ(LabelsOf(kKey), LabelsOf(kKey)) << "one object for all";
  Scan();
  history_.Recheck(kKey);
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake"));
}

TEST_F(ProcessObserverTest, LabelsStayAfterTheProcesssEnd) {
  Scan();
  machine_.RemoveProcess(100);
  Exit(100);
  EXPECT_EQ(ServiceOf(kKey), "fake");
}

TEST_F(ProcessObserverTest, SeesAForkedProcessWhileItLives) {
  Scan();
  const ForkEvent fork{Now(), Pid(200), Tid(200), Pid(100)};
  machine_.AddProcess(200, BootClock::Now().ToStartTime(fork.when).value(), "", "child");
  Apply(fork);
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "200 child"));
}

TEST_F(ProcessObserverTest, AProcessThatWasGoneAtOnceInheritsItsParentsLabels) {
  Scan();
  Fork(100, 200);  // it has no /proc/200 any more
  const ProcessKey child = KeyOfLastFork(200);
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake")) << "it may be readable yet";
  Exit(200);
  EXPECT_EQ(ServiceOf(child), "fake");
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "200 gone"));
  EXPECT_EQ(ServiceOf(child), "fake");
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "200 gone"));
}

TEST_F(ProcessObserverTest, SeesEachProgramOfAProcess) {
  Scan();
  machine_.WriteFile(machine_.proc() + "/100/stat", StatOf(100, 5, "next"));
  Exec(100);
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "100 next"));
  EXPECT_THAT(observer_.inherited, ElementsAre("none", "fake"));
  EXPECT_EQ(ServiceOf(kKey), "next");
}

TEST_F(ProcessObserverTest, SeesNoOtherProgramWhereOnlyTheExecIdIsLearnt) {
  ASSERT_TRUE(history_.Scan({}).has_value());
  Scan();
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake"));
}

TEST_F(ProcessObserverTest, SeesOnlyWhatAForkedProcessHasBecomeInTheSameBurst) {
  Scan();
  const ForkEvent fork{Now(), Pid(200), Tid(200), Pid(100)};
  machine_.AddProcess(200, BootClock::Now().ToStartTime(fork.when).value(), "", "child");
  const std::vector<ProcessEvent> burst = {fork,
                                           CommEvent{Now(), Pid(200), Tid(200), true, "child"}};
  history_.Apply(burst);
  ShowAll();
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "200 child"));
}

TEST_F(ProcessObserverTest, AChildInheritsFromAParentThatIsAsYoung) {
  constexpr uint32_t kGenerations = 8;
  Scan();
  std::vector<ProcessEvent> burst;
  for (uint32_t pid = 200; pid < 200 + kGenerations; ++pid) {
    const Pid parent(pid == 200 ? 100 : pid - 1);
    const ForkEvent fork{Now(), Pid(pid), Tid(pid), parent};
    machine_.AddProcess(pid, BootClock::Now().ToStartTime(fork.when).value(), "",
                        fmt::format("{}", pid));
    burst.emplace_back(fork);
  }
  history_.Apply(burst);
  ShowAll();
  EXPECT_THAT(observer_.inherited,
              ElementsAre("none", "fake", "200", "201", "202", "203", "204", "205", "206"));
}

TEST_F(ProcessObserverTest, TellsTheLivesOfAPidApart) {
  Scan();
  Exit(100);
  machine_.RemoveProcess(100);
  machine_.AddProcess(100, 50, "", "second");
  Scan();
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "100 second"));
  EXPECT_EQ(ServiceOf(kKey), "fake");
  EXPECT_EQ(ServiceOf({Pid(100), StartTime(50)}), "second");
}

TEST_F(ProcessObserverTest, LabelsCanBeReplacedLater) {
  Scan();
  const LabelSet first = LabelsOf(kKey);
  const LabelSet second = Label("pod");
  history_.ReplaceLabels(kKey, first, second);
  EXPECT_EQ(ServiceOf(kKey), "pod");
  Exit(100);
  history_.ReplaceLabels(kKey, second, Label("late"));
  EXPECT_EQ(ServiceOf(kKey), "late");
  history_.ReplaceLabels(kKey, first, Label("of an earlier program"));
  EXPECT_EQ(ServiceOf(kKey), "late");
  history_.ReplaceLabels({Pid(100), StartTime(6)}, nullptr, Label("another's"));
  EXPECT_EQ(ServiceOf(kKey), "late");
}

TEST_F(ProcessObserverTest, CountsSamplesThatTheObserverTakesOutAsFiltered) {
  Scan();
  observer_.unwanted = "fake";
  const Frame frame = Frame::User(Address(kStart));
  Window window = OneFrameWindow(kKey, ExecId(3), frame, Now());
  window.samples[0].count = 5;
  window.samples.push_back(window.samples[0]);
  window.samples[1].process = {Pid(999), StartTime(1)};
  window.samples[1].count = 2;
  window.samples[1].stack = 1;
  window.frames.push_back(Frame::User(Address(0x1)));
  window.stacks.push_back({.first_frame = 1, .user_frames = 1});
  window.accounting.exported = 7;
  window.accounting.idle = 3;
  const Window resolved = history_.Resolve(std::move(window)).window;
  ASSERT_EQ(resolved.samples.size(), 1U);
  EXPECT_EQ(resolved.samples[0].count, 2U);
  EXPECT_EQ(resolved.stacks.size(), 1U);
  EXPECT_EQ(resolved.frames.size(), 1U);
  EXPECT_EQ(resolved.accounting.exported, 2U);
  EXPECT_EQ(resolved.accounting.filtered, 5U);
  EXPECT_EQ(resolved.accounting.Ticks(), 10U);
  EXPECT_EQ(history_.counters().unwanted_samples, 5U);
}

TEST_F(ProcessObserverTest, SeesLivingProcessesAgainWhenAsked) {
  Scan();
  LabelsOf(kKey);
  machine_.WriteFile(machine_.proc() + "/100/stat", StatOf(100, 5, "other"));
  history_.ShowAgain();
  EXPECT_EQ(ServiceOf(kKey), "other");
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "100 other"));
  machine_.RemoveProcess(100);
  Exit(100);
  history_.ShowAgain();
  EXPECT_EQ(ServiceOf(kKey), "other") << "it has ended";
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "100 other"));
}

TEST_F(ProcessObserverTest, LabelsSamplesOfUnknownProcesses) {
  Scan();
  EXPECT_THAT(ServiceOf({Pid(999), StartTime(1)}), testing::StartsWith("999 "));
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake"));
}

TEST_F(ProcessObserverTest, SeesWhatAProcessExecsWhileItIsSeen) {
  observer_.meanwhile = [this] {
    if (observer_.seen.size() > 1) return;
    machine_.WriteFile(machine_.proc() + "/100/stat", StatOf(100, 5, "next"));
    const ProcessEvent exec = CommEvent{Now(), Pid(100), Tid(100), true, "next"};
    history_.Apply(std::span(&exec, 1));
  };
  Scan();
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "100 next"));
  EXPECT_EQ(ServiceOf(kKey), "next");
  EXPECT_EQ(observer_.seen.size(), 2U);
}

TEST_F(ProcessObserverTest, ForgetsAProcessThatIsForgottenWhileItIsSeen) {
  Scan();
  const ForkEvent fork{Now(), Pid(200), Tid(200), Pid(100)};
  machine_.AddProcess(200, BootClock::Now().ToStartTime(fork.when).value(), "", "child");
  observer_.meanwhile = [this] {
    if (observer_.seen.size() > 2) return;
    machine_.RemoveProcess(200);
    const ProcessEvent exit = ExitEvent{Now(), Pid(200), Tid(200)};
    history_.Apply(std::span(&exit, 1));
    clock_.Advance(std::chrono::hours(1));
    LabelsOf(kKey);  // a window, after which what ended long before is forgotten
  };
  Apply(fork);
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "200 child"));
  EXPECT_EQ(ServiceOf(kKey), "fake");
}

TEST_F(ProcessObserverTest, KeepsNoWindowWaitingForProcessesThatBeginMeanwhile) {
  Scan();
  uint32_t pid = 200;
  observer_.meanwhile = [&] {
    ASSERT_LT(pid, 300) << "there is no end";
    const ForkEvent fork{Now(), Pid(pid), Tid(pid), Pid(100)};
    machine_.AddProcess(pid++, BootClock::Now().ToStartTime(fork.when).value(), "");
    const ProcessEvent event = fork;
    history_.Apply(std::span(&event, 1));
  };
  history_.ShowAgain();
  EXPECT_EQ(ServiceOf(kKey), "fake");
  EXPECT_EQ(pid, 201);
}

// As after an exec and an exit that are reported together.
TEST_F(ProcessObserverTest, SeesASampledProcessThatEndsBeforeItsTurn) {
  Scan();
  Fork(100, 200);
  const ProcessKey child = KeyOfLastFork(200);
  observer_.meanwhile = [&] {
    if (observer_.seen.size() > 2) return;
    const std::vector<ProcessEvent> burst = {CommEvent{Now(), Pid(200), Tid(200), true, "child"},
                                             ExitEvent{Now(), Pid(200), Tid(200)}};
    history_.Apply(burst);
  };
  history_.ShowAgain();
  Window window = OneFrameWindow(kKey, ExecId(3), Frame::User(Address(kStart)), Now());
  window.samples.push_back(window.samples[0]);
  window.samples[1].process = child;
  window = history_.Resolve(std::move(window)).window;
  EXPECT_THAT(observer_.seen, ElementsAre("100 fake", "100 fake", "200 gone"));
  EXPECT_THAT(observer_.inherited, ElementsAre("none", "fake", "fake"));
  ASSERT_EQ(window.samples.size(), 2U);
  EXPECT_NE(window.samples[1].labels, nullptr);
}

}  // namespace
}  // namespace pyrometer
