// SPDX-License-Identifier: Apache-2.0
#include "process/window_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using ::testing::ElementsAre;

constexpr ObjectId kFoo{10};
constexpr ObjectId kBar{11};
constexpr Frame kKernel{0xffff'ffff'8100'0000};
Frame User(uint64_t address) {
  return Frame::User(Address(address));
}
Frame InFoo(uint64_t offset) {
  return Frame::Object(kFoo, ElfAddress(offset));
}
Frame InBar(uint64_t offset) {
  return Frame::Object(kBar, ElfAddress(offset));
}

// Two processes: 100 has libfoo at 0x10000 and JIT code at 0x50000, 200 has libbar at 0x10000.
class WindowResolverTest : public testing::Test {
 protected:
  WindowResolverTest() {
    Add(100, {{{Address(0x10000), Address(0x20000), kFoo, 0x10000}},
              {{Address(0x50000), Address(0x60000), ObjectId(0), 0}}});
    Add(200, {{{Address(0x10000), Address(0x20000), kBar, 0xf000}}});
  }

  void Add(uint32_t pid, const std::vector<CodeMapping>& mappings) {
    ScannedProcess process;
    process.key = {Pid(pid), StartTime(1)};
    process.threads = {Tid(pid)};
    process.maps.emplace();
    processes_.Add(process, mappings, nullptr);
  }

  uint32_t AddStack(std::vector<Frame> frames, uint16_t kernel_frames = 0) {
    Stack stack;
    stack.first_frame = static_cast<uint32_t>(window_.frames.size());
    stack.kernel_frames = kernel_frames;
    stack.user_frames = static_cast<uint16_t>(frames.size() - kernel_frames);
    stack.end = StackEnd::kComplete;
    window_.frames.insert(window_.frames.end(), frames.begin(), frames.end());
    window_.stacks.push_back(stack);
    return static_cast<uint32_t>(window_.stacks.size() - 1);
  }

  void AddSample(uint32_t pid, uint32_t stack, uint64_t first = 1000, uint64_t last = 1000) {
    Sample sample;
    sample.process = {Pid(pid), StartTime(1)};
    sample.stack = stack;
    sample.count = 1;
    sample.first_seen = MonotonicTime(first);
    sample.last_seen = MonotonicTime(last);
    window_.samples.push_back(sample);
  }

  // At 2000 libbar took libfoo's place in process 100.
  AddressSpace& Replace() {
    AddressSpace& space = processes_.Living(Pid(100))->program().space;
    space.Map({{Address(0x10000), Address(0x20000), kBar, 0xf000}}, MonotonicTime(2000));
    return space;
  }

  void Resolve() { window_ = ResolveWindow(std::move(window_), processes_, tally_); }
  const Stack& StackOf(size_t sample) const {
    return window_.stacks[window_.samples[sample].stack];
  }
  std::vector<Frame> FramesOf(size_t sample) const {
    const auto frames = window_.FramesOf(StackOf(sample));
    return {frames.begin(), frames.end()};
  }

  ProcessTable processes_;
  Window window_;
  ResolveTally tally_;
};

TEST_F(WindowResolverTest, TurnsAddressesIntoObjectFrames) {
  AddSample(100, AddStack({kKernel, User(0x10123), User(0x11000), InBar(5)}, 1));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(kKernel, InFoo(0x123), InFoo(0x1000), InBar(5)));
  EXPECT_EQ(StackOf(0).kernel_frames, 1);
  EXPECT_EQ(StackOf(0).end, StackEnd::kComplete);
  EXPECT_EQ(tally_.resolved_frames, 2U);
}

TEST_F(WindowResolverTest, GivesEachProcessItsOwnMeaningOfASharedStack) {
  const uint32_t shared = AddStack({User(0x10123)});
  AddSample(100, shared);
  AddSample(200, shared);
  AddSample(100, shared);
  AddSample(999, shared);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(0x123)));
  EXPECT_THAT(FramesOf(1), ElementsAre(InBar(0x1123)));
  EXPECT_EQ(window_.samples[2].stack, window_.samples[0].stack);
  EXPECT_THAT(FramesOf(3), ElementsAre(User(0x10123)));
  EXPECT_EQ(window_.stacks.size(), 3U);
}

TEST_F(WindowResolverTest, SaysWhoseAStackIsThatHasAddressesLeft) {
  const uint32_t shared = AddStack({User(0x50010), User(0x10001)});
  AddSample(100, shared);
  AddSample(998, shared);
  AddSample(999, shared);
  AddSample(998, shared);
  Resolve();
  for (const Sample& sample : window_.samples) {
    EXPECT_EQ(window_.stacks[sample.stack].process, sample.process);
  }
  EXPECT_EQ(window_.samples[1].stack, window_.samples[3].stack);
  EXPECT_EQ(window_.stacks.size(), 3U);
}

TEST_F(WindowResolverTest, SaysOfNoOtherStackWhoseItIs) {
  AddSample(100, AddStack({kKernel, User(0x10123)}, 1));
  AddSample(100, AddStack({kKernel}, 1));
  AddSample(100, AddStack({InFoo(4)}));
  AddStack({User(0x50010)});  // no sample refers to it
  Resolve();
  for (const Stack& stack : window_.stacks) EXPECT_EQ(stack.process, std::nullopt);
}

TEST_F(WindowResolverTest, GivesNoStackOfOneProcessToAnother) {
  Replace();
  const uint32_t shared = AddStack({InFoo(0x123)});
  AddSample(100, shared, 1999, 2000);  // nobody can tell: an address
  AddSample(200, shared, 1999, 2000);
  Resolve();
  EXPECT_EQ(StackOf(0).process, window_.samples[0].process);
  EXPECT_EQ(StackOf(1).process, std::nullopt);
  EXPECT_THAT(FramesOf(1), ElementsAre(InFoo(0x123)));
}

TEST_F(WindowResolverTest, LeavesJitCodeAsItIs) {
  AddSample(100, AddStack({User(0x50010), User(0x10001)}));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(User(0x50010), InFoo(1)));
  EXPECT_EQ(StackOf(0).end, StackEnd::kComplete);
}

TEST_F(WindowResolverTest, CutsAStackAtAReturnAddressThatIsNoCode) {
  AddSample(100,
            AddStack({kKernel, User(0x10001), User(0x10002), User(0x90000), User(0x10003)}, 1));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(kKernel, InFoo(1), InFoo(2)));
  EXPECT_EQ(StackOf(0).user_frames, 2);
  EXPECT_EQ(StackOf(0).end, StackEnd::kBadReturnAddress);
  EXPECT_EQ(tally_.cut_stacks, 1U);
}

TEST_F(WindowResolverTest, KeepsALeafThatIsNoCode) {
  AddSample(100, AddStack({User(0x90000), User(0x10003)}));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(User(0x90000), InFoo(3)));
}

TEST_F(WindowResolverTest, LeavesStacksOfUnknownProcessesWhole) {
  AddSample(999, AddStack({User(0x10001), User(0x90000)}));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(User(0x10001), User(0x90000)));
  EXPECT_EQ(StackOf(0).end, StackEnd::kComplete);
  EXPECT_EQ(tally_.unknown_process_samples, 1U);
}

TEST_F(WindowResolverTest, CutsNothingWhereMappingsMayBeMissing) {
  processes_.Living(Pid(100))->program().complete = false;
  AddSample(100, AddStack({User(0x10001), User(0x90000)}));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(1), User(0x90000)));
}

TEST_F(WindowResolverTest, KeepsAddressesThatDoNotFitIntoAnObjectFrame) {
  Add(300, {{Address(0x10000), Address(0x20000), kFoo, 0x20000}});  // negative offsets
  AddSample(300, AddStack({User(0x10001)}));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(User(0x10001)));
}

TEST_F(WindowResolverTest, CorrectsFramesOfAMappingThatHadEnded) {
  Replace();
  AddSample(100, AddStack({kKernel, InFoo(0x123), InBar(5)}, 1), 2000, 2500);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(kKernel, InBar(0x1123)));
  EXPECT_EQ(StackOf(0).user_frames, 1);
  EXPECT_EQ(StackOf(0).end, StackEnd::kNotReady);
  EXPECT_EQ(tally_.outdated_frames, 1U);
  EXPECT_EQ(tally_.doubtful_frames, 0U);
}

TEST_F(WindowResolverTest, NamesNothingIfTheMappingEndedBetweenTheTicks) {
  Replace();
  AddSample(100, AddStack({User(0x50010), InFoo(0x123), InBar(5)}), 1999, 2000);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(User(0x50010), User(0x10123)));
  EXPECT_EQ(StackOf(0).end, StackEnd::kNotReady);
  EXPECT_EQ(tally_.outdated_frames, 0U);
  EXPECT_EQ(tally_.doubtful_frames, 1U);
}

TEST_F(WindowResolverTest, LeavesAnAddressWhoseContentChangedBetweenTheTicks) {
  Replace();
  AddSample(100, AddStack({kKernel, User(0x10123), User(0x50010), User(0x11000)}, 1), 1999, 2000);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(kKernel, User(0x10123), User(0x50010), User(0x11000)));
  EXPECT_EQ(StackOf(0).end, StackEnd::kComplete);
  EXPECT_EQ(tally_.resolved_frames, 0U);
  EXPECT_EQ(tally_.doubtful_frames, 2U);
}

TEST_F(WindowResolverTest, NamesAnAddressByWhatWasThereAtAllTicks) {
  Replace();
  const uint32_t stack = AddStack({User(0x10123)});
  AddSample(100, stack, 1000, 1999);
  AddSample(100, stack, 2000, 2500);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(0x123)));
  EXPECT_THAT(FramesOf(1), ElementsAre(InBar(0x1123)));
  EXPECT_EQ(tally_.doubtful_frames, 0U);
}

TEST_F(WindowResolverTest, KeepsFramesFromBeforeTheMappingEnded) {
  Replace();
  AddSample(100, AddStack({InFoo(0x123), InBar(5)}), 1000, 1999);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(0x123), InBar(5)));
  EXPECT_EQ(StackOf(0).end, StackEnd::kComplete);
  EXPECT_EQ(tally_.outdated_frames + tally_.doubtful_frames, 0U);
}

TEST_F(WindowResolverTest, KeepsFramesOnceTheKernelSideIsTold) {
  AddressSpace& space = Replace();
  space.NoteTold(MonotonicTime(3000));
  // libfoo is somewhere else by then.
  space.Map({{Address(0x90000), Address(0xa0000), kFoo, 0x90000}}, MonotonicTime(4000));
  AddSample(100, AddStack({InFoo(0x123)}), 20'000'000, 30'000'000);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(0x123)));
}

TEST_F(WindowResolverTest, NamesNothingThatMayHaveBeenInTwoPlaces) {
  AddressSpace& space = Replace();
  space.Map({{Address(0x90000), Address(0xa0000), kFoo, 0x90000}}, MonotonicTime(2100));
  AddSample(100, AddStack({InFoo(0x123)}), 2200, 2200);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(User(0x10123)));
  EXPECT_EQ(tally_.doubtful_frames, 1U);
}

TEST_F(WindowResolverTest, KeepsFramesThatWereLookedUpForTheirMoment) {
  AddressSpace& space = Replace();
  space.Map({{Address(0x90000), Address(0xa0000), kFoo, 0x90000}}, MonotonicTime(2100));
  AddSample(100, AddStack({InFoo(0x123)}), 2200, 2200);
  window_.samples.back().looked_up = true;
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(0x123)));
}

TEST_F(WindowResolverTest, KeepsFramesOfAMappingThatCameBack) {
  Replace().Map({{Address(0x10000), Address(0x20000), kFoo, 0x10000}}, MonotonicTime(3000));
  const uint32_t stack = AddStack({InFoo(0x123), InBar(5)});
  AddSample(100, stack, 3000, 4000);
  AddSample(100, stack, 1000, 4000);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(0x123), InBar(5)));
  EXPECT_THAT(FramesOf(1), ElementsAre(User(0x10123)));
}

TEST_F(WindowResolverTest, SplitsASharedStackOfWhichSomeWereOutdated) {
  Replace();
  const uint32_t shared = AddStack({InFoo(0x123), InBar(5)});
  AddSample(100, shared, 1000, 1500);
  AddSample(100, shared, 2000, 2500);
  AddSample(200, shared, 2000, 2500);
  AddSample(100, shared, 1500, 2500);
  AddSample(100, shared, 2100, 2100);
  Resolve();
  EXPECT_EQ(window_.samples[0].stack, shared);
  EXPECT_THAT(FramesOf(0), ElementsAre(InFoo(0x123), InBar(5)));
  EXPECT_EQ(StackOf(0).end, StackEnd::kComplete);
  EXPECT_THAT(FramesOf(1), ElementsAre(InBar(0x1123)));
  EXPECT_EQ(window_.samples[2].stack, shared);
  EXPECT_THAT(FramesOf(3), ElementsAre(User(0x10123)));
  EXPECT_EQ(window_.samples[4].stack, window_.samples[1].stack);
}

TEST_F(WindowResolverTest, NamesNothingWhereAMappingEndedWithoutASuccessor) {
  AddressSpace& space = processes_.Living(Pid(100))->program().space;
  space.Replace({}, MonotonicTime(2000));
  AddSample(100, AddStack({InFoo(0x123), InBar(5)}), 2000, 2500);
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(User(0x10123)));
  EXPECT_EQ(tally_.outdated_frames, 1U);
}

TEST_F(WindowResolverTest, CorrectsFramesOfAChildThatInheritedWhatWasOutdated) {
  Replace();
  processes_.Apply(ForkEvent{MonotonicTime(2100), Pid(300), Tid(300), Pid(100)});
  const StartTime start = processes_.Living(Pid(300))->key.start_time;
  AddSample(300, AddStack({InFoo(0x123)}), 2200, 2200);
  window_.samples[0].process.start_time = start;
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(InBar(0x1123)));
}

TEST_F(WindowResolverTest, DoesNotTouchStacksWithoutAddresses) {
  AddSample(100, AddStack({kKernel}, 1));
  AddSample(100, AddStack({InFoo(4)}));
  AddSample(999, AddStack({}));
  Resolve();
  EXPECT_THAT(FramesOf(0), ElementsAre(kKernel));
  EXPECT_THAT(FramesOf(1), ElementsAre(InFoo(4)));
  EXPECT_EQ(tally_.unknown_process_samples, 0U);
}

}  // namespace
}  // namespace pyrometer
