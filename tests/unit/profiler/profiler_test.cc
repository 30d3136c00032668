// SPDX-License-Identifier: Apache-2.0
// The whole engine with its threads, on a machine made of values.
#include "profiler/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include <future>
#include <utility>

#include "foreign/direct_foreign_files.h"
#include "foreign/in_process_indexer.h"
#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::SizeIs;

class FilesOfTheEnd : public DirectForeignFiles {
 public:
  void GiveUpAt(MonotonicTime when) override { given_up_at = when; }
  MonotonicTime given_up_at{UINT64_MAX};
};

class ProfilerTest : public testing::Test {
 protected:
  Profiler::Machine Machine() {
    return {.windows = windows_,
            .tables = tables_,
            .cold = cold_,
            .processes = processes_,
            .indexer = std::make_shared<InProcessIndexer>(),
            .question_threads = workers_,
            .files = files_,
            .clock = clock_,
            .log = log_,
            .sampler_counters = [] { return SamplerCounters(); },
            .kernel_symbols = std::nullopt};
  }
  // A moment that does not come, since the clock stands still: what hangs does so for ever.
  MonotonicTime InTime() const { return After(clock_.Now(), seconds(20)); }
  static uint64_t Sum(const std::vector<FakeConsumer::Got>& got) {
    uint64_t samples = 0;
    for (const FakeConsumer::Got& one : got) samples += one.samples;
    return samples;
  }

  FakeClock clock_;
  Log log_{
      clock_, seconds(30),
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>())};
  FakeWindows windows_;
  FakeTableTarget tables_;
  FakeCold cold_;
  FakeProcesses processes_;
  QuestionThreads workers_{clock_};
  const std::shared_ptr<FilesOfTheEnd> files_ = std::make_shared<FilesOfTheEnd>();
  FakeConsumer first_;
  FakeConsumer second_;
};

TEST_F(ProfilerTest, GivesEveryTickToEveryConsumerByTheEnd) {
  Profiler profiler(Machine(), {}, seconds(10));
  profiler.Attach(first_, {.length = seconds(5)});
  profiler.Attach(second_, {.length = seconds(10), .aligned = true});
  ASSERT_TRUE(profiler.Start().has_value());
  windows_.Tick(3);
  ColdSample sample;
  sample.comm = "cold";
  cold_.Ship(sample);
  windows_.Tick(4);
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_EQ(Sum(first_.Await(1)), 8U);
  EXPECT_EQ(Sum(second_.Await(1)), 8U);
  EXPECT_TRUE(first_.Await(1).back().ends_period);
}

TEST_F(ProfilerTest, BeginsAWindowForWhoComesLater) {
  Profiler profiler(Machine(), {}, seconds(10));
  profiler.Attach(first_, {});
  ASSERT_TRUE(profiler.Start().has_value());
  windows_.Tick(3);
  profiler.Attach(second_, {});
  windows_.Tick(4);
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_EQ(Sum(first_.Await(2)), 7U);
  EXPECT_EQ(Sum(second_.Await(1)), 4U);
}

TEST_F(ProfilerTest, ChangesTheFrequencyBetweenTwoWindows) {
  Profiler profiler(Machine(), {}, seconds(10));
  profiler.Attach(first_, {});
  ASSERT_TRUE(profiler.Start().has_value());
  windows_.Tick(3);
  EXPECT_TRUE(profiler.Change({.frequency = Hertz{499}, .filter = {}}).has_value());
  windows_.Tick(4);
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_THAT(first_.Await(2),
              ElementsAre(FakeConsumer::Got{3, 0, 99, false}, FakeConsumer::Got{4, 0, 499, true}));
}

TEST_F(ProfilerTest, EndsInTimeThoughAConsumerHangs) {
  auto profiler = std::make_unique<Profiler>(Machine(), KernelSymbols(), seconds(10));
  profiler->Attach(first_, {});
  profiler->Attach(second_, {});
  first_.Hold();
  ASSERT_TRUE(profiler->Start().has_value());
  windows_.Tick(3);
  constexpr std::chrono::milliseconds kTime(50);
  std::future<bool> complete =
      std::async(std::launch::async,
                 [&profiler, until = After(clock_.Now(), kTime)] { return profiler->Stop(until); });
  EXPECT_EQ(Sum(second_.Await(1)), 3U);
  ASSERT_TRUE(first_.AwaitBegun(1));
  clock_.Advance(kTime);
  EXPECT_EQ(complete.wait_for(kTestPatience), std::future_status::ready);
  first_.Release();
  EXPECT_FALSE(complete.get());
  profiler.reset();
  EXPECT_EQ(Sum(first_.Await(1)), 3U);
}

TEST_F(ProfilerTest, GivesWhatHangsLessTimeThanWhatIsToBeDone) {
  Profiler profiler(Machine(), {}, seconds(10));
  ASSERT_TRUE(profiler.Start().has_value());
  EXPECT_EQ(files_->given_up_at, MonotonicTime(UINT64_MAX));
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_EQ(files_->given_up_at, After(clock_.Now(), Profiler::kTimeForWhatHangs));
  profiler.Stop(After(clock_.Now(), seconds(1)));
  EXPECT_EQ(files_->given_up_at, After(clock_.Now(), seconds(1)));
}

TEST_F(ProfilerTest, GoesOnWhenADrainFails) {
  Profiler profiler(Machine(), {}, seconds(10));
  profiler.Attach(first_, {});
  windows_.fail_drains = 1;
  ASSERT_TRUE(profiler.Start().has_value());
  windows_.Tick(3);
  profiler.Attach(second_, {});  // ends a window, or tries to
  windows_.Tick(4);
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_EQ(Sum(first_.Await(1)), 7U);
  EXPECT_EQ(profiler.stats().windows.failed_drains, 1U);
}

TEST_F(ProfilerTest, DrainsOnWhenResolvingHangs) {
  std::promise<void> hangs;
  std::promise<void> go_on;
  processes_.on_resolve = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    hangs.set_value();
    go_on.get_future().wait();
  };
  Profiler profiler(Machine(), {}, seconds(10));
  profiler.Attach(first_, {});
  ASSERT_TRUE(profiler.Start().has_value());
  windows_.Tick(3);
  profiler.Attach(second_, {});  // ends a window
  hangs.get_future().wait();
  windows_.Tick(4);
  EXPECT_TRUE(profiler.Change({.frequency = Hertz{499}, .filter = {}}).has_value());  // another
  EXPECT_EQ(windows_.drains, 2);
  go_on.set_value();
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_EQ(Sum(first_.Await(2)), 7U);
}

TEST_F(ProfilerTest, ChangesNothingBeforeItSamplesAndAfter) {
  Profiler profiler(Machine(), {}, seconds(10));
  EXPECT_FALSE(profiler.Change({.frequency = Hertz{499}, .filter = {}}).has_value());
  ASSERT_TRUE(profiler.Start().has_value());
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_FALSE(profiler.Change({.frequency = Hertz{499}, .filter = {}}).has_value());
}

TEST_F(ProfilerTest, LoadsTablesBeforeTheFirstTick) {
  tables_.wanted = {ObjectId(4)};
  const Profiler profiler(Machine(), {}, seconds(10));
  EXPECT_THAT(tables_.loaded, SizeIs(1));
}

TEST_F(ProfilerTest, DeniesAndAllowsCgroups) {
  Profiler profiler(Machine(), {}, seconds(10));
  EXPECT_TRUE(profiler.Deny(42).has_value());
  EXPECT_THAT(windows_.denied, ElementsAre(42));
  profiler.Allow(42);
  EXPECT_THAT(windows_.denied, ElementsAre());
}

TEST_F(ProfilerTest, CanBeStoppedBeforeItStarted) {
  Profiler profiler(Machine(), {}, seconds(10));
  profiler.Attach(first_, {});
  EXPECT_TRUE(profiler.Stop(InTime()));
  EXPECT_EQ(windows_.drains, 0);
}

}  // namespace
}  // namespace pyrometer
