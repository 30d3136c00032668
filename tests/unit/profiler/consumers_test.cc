// SPDX-License-Identifier: Apache-2.0
#include "profiler/consumers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

class ConsumersTest : public testing::Test {
 protected:
  void Offer(uint64_t samples, std::vector<ConsumerId> ended = {},
             const std::vector<MissedWindow>& missed = {}) {
    NamedWindow named;
    named.window = WindowOf(samples);
    consumers_.Offer(number_++, std::make_shared<const NamedWindow>(std::move(named)), ended,
                     missed);
  }
  ConsumerId Attach(FakeConsumer& consumer, uint64_t first = 0) {
    return consumers_.Attach(consumer, {.length = seconds(5)}, {clock_.Now(), clock_.WallNow()},
                             first);
  }

  FakeClock clock_;
  FakeConsumer quick_;
  FakeConsumer slow_;
  Consumers consumers_{seconds(10), clock_};
  uint64_t number_ = 0;
};

TEST_F(ConsumersTest, GiveEveryWindowToEverybody) {
  Attach(quick_);
  const ConsumerId second = Attach(slow_);
  Offer(3, {second});
  EXPECT_THAT(quick_.Await(1), ElementsAre(FakeConsumer::Got{3, 0, 99, false}));
  EXPECT_THAT(slow_.Await(1), ElementsAre(FakeConsumer::Got{3, 0, 99, true}));
}

TEST_F(ConsumersTest, ChangeHowLongAPeriodIs) {
  const ConsumerId id = Attach(quick_);
  const Moment now{clock_.Now(), clock_.WallNow()};
  consumers_.SetPeriod(id, {.length = seconds(2)}, now);
  EXPECT_EQ(consumers_.EndOfWindow(now.monotonic), After(now.monotonic, seconds(2)));
  consumers_.SetPeriod(id + 1, {.length = seconds(1)}, now);
  EXPECT_EQ(consumers_.EndOfWindow(now.monotonic), After(now.monotonic, seconds(2)));
}

TEST_F(ConsumersTest, LetOneThatSleepsKeepNobodyWaitingAndTellItWhatItMissed) {
  Attach(quick_);
  const ConsumerId slow = Attach(slow_);
  slow_.Hold();
  Offer(1);
  ASSERT_TRUE(slow_.AwaitBegun(1));
  constexpr size_t kMore = Consumers::kWaitingWindows + 3;
  for (size_t i = 0; i < kMore; ++i) {
    Offer(10, i == 1 ? std::vector{slow} : std::vector<ConsumerId>());
    // The quick one keeps up, whatever the other does.
    EXPECT_EQ(quick_.Await(i + 2).size(), i + 2);
  }
  EXPECT_EQ(consumers_.counters().dropped, 3U);
  slow_.Release();
  const auto got = slow_.Await(1 + Consumers::kWaitingWindows);
  ASSERT_EQ(got.size(), 1 + Consumers::kWaitingWindows);
  EXPECT_EQ(got[1], (FakeConsumer::Got{10, 30, 99, true}));  // the period ended in what it missed
  EXPECT_EQ(got[2], (FakeConsumer::Got{10, 0, 99, false}));
}

TEST_F(ConsumersTest, GiveNoWindowThatBeganBeforeTheAttachment) {
  Attach(quick_, 1);
  Offer(3);
  Offer(4);
  EXPECT_THAT(quick_.Await(1), ElementsAre(FakeConsumer::Got{4, 0, 99, false}));
}

TEST_F(ConsumersTest, TellWhatWasDroppedBeforeItHadNamesToThoseWhoWereAttachedThen) {
  Attach(quick_);
  Attach(slow_, 2);
  Accounting missed;
  missed.lost[Accounting::kWindowDropped] = 17;
  number_ = 2;
  Offer(3, {}, {{.number = 1, .accounting = missed}});
  EXPECT_THAT(quick_.Await(1), ElementsAre(FakeConsumer::Got{3, 17, 99, false}));
  EXPECT_THAT(slow_.Await(1), ElementsAre(FakeConsumer::Got{3, 0, 99, false}));
}

TEST_F(ConsumersTest, AreDoneWithWhatTheyGotBeforeTheyAreDetached) {
  const ConsumerId id = Attach(quick_);
  for (uint64_t i = 1; i <= 5; ++i) Offer(i);
  consumers_.Detach(id);
  EXPECT_EQ(quick_.Await(5).size(), 5U);
  EXPECT_TRUE(consumers_.empty());
  EXPECT_EQ(consumers_.counters().consumed, 5U);
}

TEST_F(ConsumersTest, CloseWithoutWaitingForOneThatHangs) {
  Attach(slow_);
  slow_.Hold();
  Offer(1);
  EXPECT_FALSE(consumers_.Close(clock_.Now()));
  slow_.Release();
  EXPECT_TRUE(consumers_.Close(After(clock_.Now(), seconds(20))));
  EXPECT_EQ(slow_.Await(1).size(), 1U);
}

}  // namespace
}  // namespace pyrometer
