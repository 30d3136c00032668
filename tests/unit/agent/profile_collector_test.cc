// SPDX-License-Identifier: Apache-2.0
#include "agent/profile_collector.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

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

std::chrono::steady_clock::time_point Soon() {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
}

TEST(PeriodAdder, AddsUpOnePeriodAndNoMore) {
  PeriodAdder adder({});
  adder.Consume(Second(1, 2, false));
  adder.Consume(Second(2, 3, true));
  adder.Consume(Second(3, 100, false));
  EXPECT_TRUE(adder.AwaitEnd(Soon(), {}));
  EXPECT_EQ(SamplesOf(std::move(adder).Finish()), 5);
}

TEST(PeriodAdder, DoesNotWaitLongerThanAsked) {
  PeriodAdder adder({});
  adder.Consume(Second(1, 2, false));
  EXPECT_FALSE(adder.AwaitEnd(Soon(), {}));
}

TEST(PeriodAdder, WaitsNoMoreForSomebodyWhoIsGone) {
  PeriodAdder adder({});
  std::stop_source stop;
  stop.request_stop();
  const auto never = std::chrono::steady_clock::now() + std::chrono::hours(1);
  EXPECT_FALSE(adder.AwaitEnd(never, stop.get_token()));
}

}  // namespace
}  // namespace pyrometer
