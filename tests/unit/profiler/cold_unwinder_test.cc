// SPDX-License-Identifier: Apache-2.0
#include "profiler/cold_unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

constexpr ObjectId kProgram(3);

// In a file without call frame information, so that the stack is its leaf.
ColdSample SampleAt(uint64_t pc) {
  ColdSample sample;
  sample.process = {Pid(7), StartTime(1)};
  sample.comm = "cold";
  sample.when = MonotonicTime(5);
  sample.exec_pages = 16;
  sample.pc = Address(pc);
  sample.stack.resize(64);
  sample.kernel_frames = {Frame::Kernel(KernelAddress(0xffffffff81000000))};
  return sample;
}

class ColdUnwinderTest : public testing::Test {
 protected:
  ColdUnwinderTest() {
    processes_.program =
        ProgramMappings{.mappings = {{Address(0x400000), Address(0x410000), kProgram, 0x400000}},
                        .exec_pages = 16,
                        .complete = true};
  }

  Window Move(MonotonicTime end = MonotonicTime(UINT64_MAX)) {
    Window window;
    window.end = end;
    unwinder_.MoveInto(window);
    return window;
  }

  FakeCold source_;
  FakeProcesses processes_;
  FakeTables tables_;
  FakeTableTarget kernel_tables_;
  FakeClock clock_;
  ColdUnwinder unwinder_{{.source = source_,
                          .processes = processes_,
                          .tables = tables_,
                          .kernel_tables = kernel_tables_,
                          .clock = clock_}};
};

TEST_F(ColdUnwinderTest, AddsWhatItUnwoundToTheNextWindowOnce) {
  source_.Ship(SampleAt(0x400100));
  EXPECT_TRUE(unwinder_.Unwind());
  const Window window = Move();
  ASSERT_EQ(window.samples.size(), 1U);
  EXPECT_EQ(window.samples[0].comm, "cold");
  EXPECT_TRUE(window.samples[0].looked_up);
  const Stack& stack = window.stacks[window.samples[0].stack];
  EXPECT_EQ(stack.kernel_frames, 1);
  EXPECT_EQ(window.FramesOf(stack)[1], Frame::Object(kProgram, ElfAddress(0x100)));
  EXPECT_TRUE(Move().samples.empty());
  EXPECT_FALSE(unwinder_.Unwind());
}

TEST_F(ColdUnwinderTest, KeepsWhatTheKernelSideHasUnwound) {
  ColdSample sample = SampleAt(0);
  sample.unwound = {.frames = {Frame::Object(kProgram, ElfAddress(0x200))},
                    .end = StackEnd::kTruncated};
  source_.Ship(sample);
  EXPECT_TRUE(unwinder_.Unwind());
  const Window window = Move();
  ASSERT_EQ(window.samples.size(), 1U);
  EXPECT_FALSE(window.samples[0].looked_up) << "the kernel side did, as for those in its maps";
  const Stack& stack = window.stacks[window.samples[0].stack];
  EXPECT_EQ(stack.kernel_frames, 1);
  EXPECT_EQ(stack.user_frames, 1);
  EXPECT_EQ(stack.end, StackEnd::kTruncated);
  EXPECT_EQ(window.FramesOf(stack)[1], Frame::Object(kProgram, ElfAddress(0x200)));
  EXPECT_TRUE(kernel_tables_.needed.empty());
}

TEST_F(ColdUnwinderTest, TellsTheKernelSideWhichRowsTheSampleNeeded) {
  source_.Ship(SampleAt(0x400100));
  unwinder_.Unwind();
  EXPECT_THAT(kernel_tables_.needed,
              testing::ElementsAre(testing::Pair(kProgram, ElfAddress(0x100))));
}

TEST_F(ColdUnwinderTest, KeepsASampleFromAfterTheWindowForTheNextOne) {
  source_.Ship(SampleAt(0x400100));  // at 5
  unwinder_.Unwind();
  EXPECT_TRUE(Move(MonotonicTime(4)).samples.empty());
  EXPECT_EQ(Move(MonotonicTime(5)).samples.size(), 1U);
}

TEST_F(ColdUnwinderTest, LooksAgainAtAProcessWhoseMemoryIsNotWhatIsKnown) {
  processes_.program->exec_pages = 15;
  processes_.on_recheck = [this] { processes_.program->exec_pages = 16; };
  source_.Ship(SampleAt(0x400100));
  unwinder_.Unwind();
  EXPECT_EQ(processes_.rechecks, 1);
  EXPECT_EQ(Move().samples.size(), 1U);
}

TEST_F(ColdUnwinderTest, TakesATickInTheMiddleOfAnExecForOneWithoutAUserStack) {
  processes_.program->exec_pages = 15;
  ColdSample sample = SampleAt(0x400100);
  sample.stack.clear();
  source_.Ship(sample);
  unwinder_.Unwind();
  const Window window = Move();
  EXPECT_EQ(window.stacks.at(0).end, StackEnd::kNoUserStack);
  EXPECT_EQ(processes_.rechecks, 0);
}

TEST_F(ColdUnwinderTest, KeepsASampleUntilTheTableThatItNeedsIsMade) {
  tables_.pending = {kProgram};
  source_.Ship(SampleAt(0x400100));
  EXPECT_FALSE(unwinder_.Unwind()) << "nothing was done, and waking it is up to the table";
  EXPECT_TRUE(Move().samples.empty());
  EXPECT_EQ(unwinder_.counters().put_aside, 1U);
  unwinder_.Unwind();
  EXPECT_EQ(tables_.asked, 1) << "it is not tried over and over";
  tables_.pending.clear();
  EXPECT_TRUE(unwinder_.Unwind());
  EXPECT_EQ(Move().samples.size(), 1U);
  EXPECT_EQ(unwinder_.counters().put_aside, 0U);
}

TEST_F(ColdUnwinderTest, UnwindsOthersWhileATableIsBeingMade) {
  constexpr ObjectId kOther(4);
  processes_.program->mappings.push_back({Address(0x500000), Address(0x510000), kOther, 0x500000});
  tables_.pending = {kProgram};
  source_.Ship(SampleAt(0x400100));
  source_.Ship(SampleAt(0x500100));
  EXPECT_TRUE(unwinder_.Unwind());
  EXPECT_EQ(Move().samples.size(), 1U);
  EXPECT_EQ(unwinder_.counters().waiting, 1U);
}

TEST_F(ColdUnwinderTest, KeepsOnlySoManyStackBytesUntilTablesAreMade) {
  tables_.pending = {kProgram};
  constexpr size_t kBytes = size_t{64} << 10;
  constexpr size_t kMost = ColdUnwinder::kMaxPutAside / kBytes;
  for (size_t i = 0; i < kMost + 3; ++i) {
    ColdSample sample = SampleAt(0x400100);
    sample.stack.resize(kBytes);
    source_.Ship(std::move(sample));
  }
  unwinder_.Unwind();
  EXPECT_EQ(unwinder_.counters().put_aside, kMost);
  EXPECT_EQ(unwinder_.counters().no_room, 3U);
  const Window window = Move();
  ASSERT_EQ(window.samples.size(), 3U) << "no sample is lost";
  EXPECT_EQ(window.stacks.at(0).end, StackEnd::kNotReady);
  EXPECT_EQ(window.FramesOf(window.stacks.at(0)).back(),
            Frame::Object(kProgram, ElfAddress(0x100)));
}

TEST_F(ColdUnwinderTest, GivesUpAtTheDeadlineWhatATableNeverCameFor) {
  tables_.pending = {kProgram};
  source_.Ship(SampleAt(0x400100));
  std::jthread thread([this](const std::stop_token& stop) { unwinder_.Run(stop); });
  const MonotonicTime until = After(clock_.Now(), std::chrono::milliseconds(20));
  const std::future<void> finished =
      std::async(std::launch::async, [&] { unwinder_.Finish(until); });
  clock_.Advance(std::chrono::milliseconds(20));
  finished.wait();
  EXPECT_EQ(Move().samples.size(), 1U);
  EXPECT_EQ(unwinder_.counters().given_up, 1U);
}

TEST_F(ColdUnwinderTest, LeavesTheRingAloneWhileTooMuchWaitsForAWindow) {
  for (size_t i = 0; i < ColdUnwinder::kMaxDone; ++i) source_.Ship(SampleAt(0x400100));
  unwinder_.Unwind();
  source_.Ship(SampleAt(0x400200));
  EXPECT_TRUE(unwinder_.Unwind());  // to be looked at again soon
  EXPECT_EQ(source_.waiting(), 1U);
  EXPECT_EQ(Move().samples.size(), ColdUnwinder::kMaxDone);
  unwinder_.Unwind();
  EXPECT_EQ(Move().samples.size(), 1U);
}

TEST_F(ColdUnwinderTest, StopsBetweenTwoSamples) {
  std::stop_source stop;
  tables_.on_make = [&stop](ObjectId) { stop.request_stop(); };
  source_.Ship(SampleAt(0x400100));
  source_.Ship(SampleAt(0x400200));
  unwinder_.Unwind(stop.get_token());
  EXPECT_EQ(unwinder_.counters().unwound, 1U);
  EXPECT_EQ(unwinder_.counters().waiting, 1U);
}

TEST_F(ColdUnwinderTest, FinishesWithAllThatWasShippedHoweverMuchWaits) {
  const size_t many = ColdUnwinder::kMaxDone + 2;
  for (size_t i = 0; i < many; ++i) source_.Ship(SampleAt(0x400100));
  const std::jthread thread([this](const std::stop_token& stop) { unwinder_.Run(stop); });
  unwinder_.Finish(After(clock_.Now(), std::chrono::seconds(20)));
  EXPECT_EQ(Move().samples.size(), many);
  EXPECT_EQ(unwinder_.counters().given_up, 0U);
}

TEST_F(ColdUnwinderTest, GivesUpAtTheDeadlineAndSaysSo) {
  std::promise<void> stuck;
  std::promise<void> release;
  tables_.on_make = [&](ObjectId) {
    stuck.set_value();
    release.get_future().wait();
  };
  source_.Ship(SampleAt(0x400100));
  std::jthread thread([this](const std::stop_token& stop) { unwinder_.Run(stop); });
  stuck.get_future().wait();
  source_.Ship(SampleAt(0x400200));
  unwinder_.Finish(clock_.Now());
  const Window window = Move();
  ASSERT_EQ(window.samples.size(), 2U);
  for (const Stack& stack : window.stacks) {
    EXPECT_EQ(stack.end, StackEnd::kNotReady);
    EXPECT_EQ(stack.kernel_frames, 1);
  }
  EXPECT_EQ(window.frames.back(), Frame::User(Address(0x400200)));
  release.set_value();
  thread.request_stop();
  thread.join();
  EXPECT_TRUE(Move().samples.empty());  // what was being unwound is not told twice
  EXPECT_EQ(unwinder_.counters().given_up, 2U);
}

}  // namespace
}  // namespace pyrometer
