// SPDX-License-Identifier: Apache-2.0
#include "agent/profile_collector.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <utility>

#include "tests/shared/fake_clock.h"
#include "tests/unit/agent/named_window.h"

namespace pyrometer {
namespace {

Delivery Second(int second, uint64_t samples, bool ends_period) {
  NamedWindow window = EmptyWindow(second);
  AddSamples(window, "nginx", samples);
  return {.window = std::make_shared<const NamedWindow>(std::move(window)),
          .ends_period = ends_period,
          .missed = {}};
}

uint64_t SamplesOf(const Profile& profile) {
  uint64_t sum = 0;
  for (const ProfileSample& sample : profile.samples) sum += sample.count;
  return sum;
}

TEST(PeriodAdder, AddsUpOnePeriodAndNoMore) {
  PeriodAdder adder({});
  adder.Consume(Second(1, 2, false));
  adder.Consume(Second(2, 3, true));
  adder.Consume(Second(3, 100, false));
  const FakeClock clock;
  EXPECT_TRUE(adder.AwaitEnd(clock, clock.Now(), {}));
  EXPECT_EQ(SamplesOf(std::move(adder).Finish()), 5);
}

TEST(PeriodAdder, AccountsForTicksOfWindowsThatItMissed) {
  PeriodAdder adder({});
  Delivery last = Second(1, 2, true);
  last.missed.idle = 3;
  last.missed.lost[Accounting::kWindowDropped] = 4;
  adder.Consume(last);
  const Accounting accounting = std::move(adder).Finish().accounting;
  EXPECT_EQ(accounting.idle, 3U);
  EXPECT_EQ(accounting.lost[Accounting::kWindowDropped], 4U);
}

TEST(PeriodAdder, DoesNotWaitLongerThanAsked) {
  PeriodAdder adder({});
  adder.Consume(Second(1, 2, false));
  FakeClock clock;
  const MonotonicTime until = After(clock.Now(), std::chrono::hours(1));
  auto ended = std::async(std::launch::async, [&] { return adder.AwaitEnd(clock, until, {}); });
  clock.Advance(std::chrono::hours(1));
  adder.Consume(Second(2, 2, false));
  EXPECT_FALSE(ended.get());
}

TEST(PeriodAdder, WaitsNoMoreForSomebodyWhoIsGone) {
  PeriodAdder adder({});
  const FakeClock clock;
  const MonotonicTime never = After(clock.Now(), std::chrono::hours(1));
  std::stop_source stop;
  auto ended = std::async(std::launch::async,
                          [&] { return adder.AwaitEnd(clock, never, stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(ended.get());
}

}  // namespace
}  // namespace pyrometer
