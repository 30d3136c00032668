// SPDX-License-Identifier: Apache-2.0
#include "profiler/sampling_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include <thread>

#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

class SamplingLoopTest : public testing::Test {
 protected:
  SamplingLoopTest() {
    consumers_.Attach(consumer_, {.length = seconds(5)}, {clock_.Now(), clock_.WallNow()}, 0);
    EXPECT_TRUE(loop_.Start().has_value());
  }

  // Steps as the thread would, for `time`.
  void Run(std::chrono::nanoseconds time) {
    const MonotonicTime end = After(clock_.Now(), time);
    while (true) {
      const std::chrono::nanoseconds wait = loop_.Step();
      const std::chrono::nanoseconds left = Between(clock_.Now(), end);
      if (wait >= left) return clock_.Advance(left);
      ASSERT_GT(wait.count(), 0) << "it does not wait";
      clock_.Advance(wait);
    }
  }

  void Finish() {
    const std::jthread unwinding([this](const std::stop_token& stop) { cold_.Run(stop); });
    loop_.Finish(After(clock_.Now(), seconds(20)));
  }

  // The samples of each window that was taken.
  std::vector<uint64_t> Taken() {
    std::vector<uint64_t> taken;
    while (line_.size() > 0) taken.push_back(SamplesOf(line_.Pop()->window));
    return taken;
  }

  FakeClock clock_;
  Log log_{
      clock_, seconds(30),
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>())};
  FakeWindows source_;
  FakeProcesses processes_;
  FakeCold cold_source_;
  FakeTables tables_;
  FakeTableTarget kernel_tables_;
  ColdUnwinder cold_{{.source = cold_source_,
                      .processes = processes_,
                      .tables = tables_,
                      .kernel_tables = kernel_tables_,
                      .clock = clock_}};
  FakeConsumer consumer_;
  Consumers consumers_{seconds(10), clock_};
  WindowLine<TakenWindow> line_{3};
  SamplingLoop loop_{{.source = source_,
                      .cold = cold_,
                      .consumers = consumers_,
                      .out = line_,
                      .clock = clock_,
                      .log = log_}};
};

TEST_F(SamplingLoopTest, TakesAWindowWhereAPeriodEnds) {
  source_.Tick(3);
  Run(milliseconds(4999));
  EXPECT_EQ(line_.size(), 0U);
  Run(milliseconds(2));
  const std::optional<TakenWindow> taken = line_.Pop();
  EXPECT_EQ(SamplesOf(taken->window), 3U);
  EXPECT_THAT(taken->ended, ElementsAre(1));
}

TEST_F(SamplingLoopTest, TakesAWindowEarlyThatFillsUpAndEndsNoPeriodWithIt) {
  source_.until_full = milliseconds(300);
  source_.Tick(3);
  source_.nearly_full = true;
  Run(milliseconds(400));
  const std::optional<TakenWindow> taken = line_.Pop();
  EXPECT_THAT(taken->ended, ElementsAre());
  EXPECT_EQ(loop_.counters().early_windows, 1U);
}

TEST_F(SamplingLoopTest, LooksAtMapsThatFillUpNotMoreOftenThanFourTimesASecond) {
  source_.until_full = milliseconds(0);
  EXPECT_EQ(loop_.Step(), SamplingLoop::kLook);
}

TEST_F(SamplingLoopTest, LosesNothingWhenADrainFails) {
  source_.Tick(3);
  source_.fail_drains = 2;
  Run(milliseconds(5100));
  EXPECT_EQ(line_.size(), 0U);
  source_.Tick(4);
  Run(seconds(1));
  EXPECT_THAT(Taken(), ElementsAre(7));
  EXPECT_EQ(loop_.counters().failed_drains, 2U);
  EXPECT_EQ(source_.drains, 3);
}

TEST_F(SamplingLoopTest, GoesOnWhenCpusCannotBeLookedFor) {
  source_.fail_cpu_looks = 3;
  Run(milliseconds(5100));
  EXPECT_EQ(loop_.counters().failed_cpu_looks, 3U);
  EXPECT_EQ(source_.cpu_looks, 5);
  EXPECT_EQ(line_.size(), 1U);
}

TEST_F(SamplingLoopTest, DrainsOnWhenNobodyNamesTheWindows) {
  for (uint64_t i = 0; i < 5; ++i) {
    source_.Tick(10 + i);
    Run(milliseconds(5001));
  }
  EXPECT_EQ(line_.dropped(), 2U);
  const std::optional<TakenWindow> taken = line_.Pop();
  EXPECT_EQ(SamplesOf(taken->window), 12U);
  ASSERT_EQ(taken->missed.size(), 2U);
  EXPECT_EQ(taken->missed[1].number, 1U);
  EXPECT_EQ(taken->missed[1].accounting.lost[Accounting::kWindowDropped], 11U);
  EXPECT_EQ(taken->missed[1].accounting.exported, 0U);
  EXPECT_THAT(taken->ended, ElementsAre(1, 1, 1));
}

TEST_F(SamplingLoopTest, ScalesASampleThatCameLateByTheFrequencyAtWhichItWasTaken) {
  source_.Tick(1);
  ColdSample late;
  late.when = MonotonicTime(1);
  cold_source_.Ship(late);
  Run(seconds(1));
  EXPECT_TRUE(loop_.Change({.frequency = Hertz{499}, .filter = {}}).has_value());
  cold_.Unwind();
  Run(milliseconds(4100));
  line_.Pop();
  const std::optional<TakenWindow> after = line_.Pop();
  EXPECT_EQ(after->window.frequency, Hertz{499});
  ASSERT_EQ(after->window.samples.size(), 1U);
  EXPECT_EQ(after->window.samples[0].frequency, Hertz{99});
}

TEST_F(SamplingLoopTest, EndsTheWindowWithAChangeSoThatEachHasItsOwnFrequency) {
  source_.Tick(3);
  Run(seconds(1));
  EXPECT_TRUE(loop_.Change({.frequency = Hertz{499}, .filter = {}}).has_value());
  source_.Tick(4);
  Run(milliseconds(4100));
  const std::optional<TakenWindow> before = line_.Pop();
  const std::optional<TakenWindow> after = line_.Pop();
  EXPECT_EQ(before->window.frequency, Hertz{99});
  EXPECT_EQ(SamplesOf(before->window), 3U);
  EXPECT_THAT(before->ended, ElementsAre());
  EXPECT_EQ(after->window.frequency, Hertz{499});
  EXPECT_EQ(SamplesOf(after->window), 4U);
}

TEST_F(SamplingLoopTest, EndsNoWindowForAChangeThatIsRefused) {
  source_.refuse_changes = true;
  EXPECT_FALSE(loop_.Change({.frequency = Hertz{499}, .filter = {}}).has_value());
  EXPECT_EQ(source_.drains, 0);
  EXPECT_EQ(loop_.counters().changes, 0U);
}

TEST_F(SamplingLoopTest, CountsASampleThatUserSpaceUnwindsInTheWindowItComesWith) {
  source_.Tick(2);
  ColdSample sample;
  sample.comm = "cold";
  cold_source_.Ship(sample);
  cold_.Unwind();
  Run(milliseconds(5001));
  EXPECT_EQ(line_.Pop()->window.accounting.exported, 3U);
}

TEST_F(SamplingLoopTest, TriesTheLastWindowAgainAndEndsAllPeriods) {
  source_.Tick(3);
  source_.fail_drains = 2;
  Finish();
  EXPECT_TRUE(source_.stopped);
  const std::optional<TakenWindow> taken = line_.Pop();
  EXPECT_EQ(SamplesOf(taken->window), 3U);
  EXPECT_THAT(taken->ended, ElementsAre(1));
  EXPECT_FALSE(line_.Pop().has_value());
}

TEST_F(SamplingLoopTest, TakesWhatAFailedAttemptLeftBeforeItEndsAWindow) {
  source_.leftover = true;
  EXPECT_EQ(loop_.BeginWindow(), 2U);
  EXPECT_EQ(source_.drains, 2);
  source_.leftover = true;
  Finish();
  EXPECT_EQ(source_.drains, 4);
}

TEST_F(SamplingLoopTest, HandsOutALastWindowThoughTheKernelDoesNotGiveItsMaps) {
  source_.Tick(3);
  Run(milliseconds(5001));
  source_.Tick(4);
  ColdSample sample;
  sample.comm = "cold";
  cold_source_.Ship(sample);
  source_.fail_drains = 1'000'000;
  source_.on_failed_drain = [this] { clock_.Advance(milliseconds(50)); };
  const int drains = source_.drains;
  const std::jthread unwinding([this](const std::stop_token& stop) { cold_.Run(stop); });
  loop_.Finish(After(clock_.Now(), milliseconds(200)));
  EXPECT_EQ(source_.drains - drains, 4) << "it is tried for as long as there is time";
  line_.Pop();
  const std::optional<TakenWindow> last = line_.Pop();
  EXPECT_THAT(last->ended, ElementsAre(1));
  EXPECT_EQ(last->window.accounting.exported, 1U);
  EXPECT_EQ(last->window.accounting.lost[Accounting::kInternal], 3U);
}

TEST_F(SamplingLoopTest, BeginsNoWindowForAConsumerWhereOneCouldNotBeEnded) {
  EXPECT_EQ(loop_.BeginWindow(), 1U);
  source_.fail_drains = 1;
  EXPECT_EQ(loop_.BeginWindow(), 2U);
}

TEST_F(SamplingLoopTest, SaysInTheLastWindowWhatNeverCame) {
  source_.Tick(3);
  Run(milliseconds(5001));
  source_.Tick(4);
  static_cast<void>(source_.Drain());  // somebody else took them
  Finish();
  line_.Pop();
  const Accounting last = line_.Pop()->window.accounting;
  EXPECT_EQ(last.lost[Accounting::kInternal], 4U);
}

}  // namespace
}  // namespace pyrometer
