// SPDX-License-Identifier: Apache-2.0
// What an outbox does with each answer of its sink.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/outbox.h"
#include "tests/unit/export/delivery_fixture.h"

namespace pyrometer {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST_F(OutboxTest, SendsAgainWhatSurelyDidNotArriveAndNothingElse) {
  std::atomic<int> calls = 0;
  ScriptedSink sink([&](const Parcel&) { return ++calls <= 3 ? Refused() : Taken(); });
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 5);
  ASSERT_TRUE(
      PassUntil(*outbox, seconds(1), [&] { return outbox->counters().ticks.delivered == 5; }));
  EXPECT_EQ(sink.attempts(), 4);
  EXPECT_EQ(outbox->counters().retries, 3);
  EXPECT_EQ(outbox->counters().last_failure->reason, "unavailable");
  EXPECT_EQ(outbox->counters().last_failure->message, "come again");
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST_F(OutboxTest, DropsWhatMayHaveArrived) {
  ScriptedSink sink([](const Parcel&) { return Unanswered(); });
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 5);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("maybe_arrived", 5)));
  EXPECT_EQ(sink.attempts(), 1);
}

TEST_F(OutboxTest, SendsAgainWhatMayHaveArrivedIfItShouldArriveAtLeastOnce) {
  std::atomic<int> calls = 0;
  ScriptedSink sink([&](const Parcel&) { return ++calls == 1 ? Unanswered() : Taken(); });
  const auto outbox = Make(sink, {.retry = {.at_least_once = true}});
  Offer(*outbox, "a", 5);
  ASSERT_TRUE(
      PassUntil(*outbox, seconds(1), [&] { return outbox->counters().ticks.delivered == 5; }));
  EXPECT_EQ(sink.attempts(), 2);
}

TEST_F(OutboxTest, DropsWhatIsRejectedAndRepeatsTheServersWordsOnce) {
  ScriptedSink sink([](const Parcel&) { return Rejected(); });
  const auto outbox = Make(sink);
  for (int i = 0; i < 5; ++i) Offer(*outbox, std::to_string(i), 2);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("http_400", 10)));
  outbox->Close(clock_.Now());
  EXPECT_EQ(log_.Text(), "sink test: rejects a profile (http_400): bad label\n");
}

TEST_F(OutboxTest, CountsWhatASinkTakesOnlyInPart) {
  ScriptedSink sink([](const Parcel&) {
    return Receipt{
        .outcome = Outcome::kDelivered, .message = "two too many", .rejected_samples = 2};
  });
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 5);
  Offer(*outbox, "b", 1);  // it cannot reject more than there is
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_EQ(outbox->counters().ticks.delivered, 3);
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("rejected", 3)));
}

TEST_F(OutboxTest, TellsOfAWarningThatComesWithADelivery) {
  ScriptedSink sink([](const Parcel&) {
    return Receipt{.outcome = Outcome::kDelivered, .reason = "warning", .message = "layout is old"};
  });
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 5);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.delivered == 5; }));
  outbox->Close(clock_.Now());
  EXPECT_THAT(log_.Text(), HasSubstr("sink test: takes a profile and warns: layout is old"));
  EXPECT_FALSE(outbox->counters().last_failure);
}

TEST_F(OutboxTest, AsksAFailingSinkWithOneRequestAtATime) {
  ScriptedSink sink([](const Parcel&) { return Refused(); });
  const auto outbox = Make(sink);
  for (int i = 0; i < 8; ++i) Offer(*outbox, std::to_string(i), 1);
  for (uint64_t failures = 1; failures <= 5; ++failures) {
    ASSERT_TRUE(PassUntil(*outbox, seconds(10), [&] { return sink.attempts() >= failures; }));
  }
  EXPECT_EQ(sink.most_under_way(), 1);
  EXPECT_TRUE(outbox->counters().is_failing);
}

TEST_F(OutboxTest, DoesNotAskBeforeTheServerWantsIt) {
  ScriptedSink sink([](const Parcel&) {
    Receipt receipt = Refused();
    receipt.retry_after = seconds(60);
    return receipt;
  });
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  for (int i = 0; i < 59; ++i) Pass(*outbox, seconds(1));
  outbox->Close(clock_.Now());  // whatever was begun has ended
  EXPECT_EQ(sink.attempts(), 1);
}

TEST_F(OutboxTest, DeliversTheRestWhenOneParcelIsRefusedForEver) {
  ScriptedSink sink(
      [](const Parcel& parcel) { return parcel.series == "poison" ? Refused() : Taken(); });
  const auto outbox = Make(sink, {.max_refusals = 3});
  Offer(*outbox, "poison", 1000);
  for (int i = 0; i < 100; ++i) {
    Offer(*outbox, std::to_string(i), 1);
    ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] {
      return outbox->counters().ticks.delivered == static_cast<uint64_t>(i) + 1;
    }));
  }
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("refused", 1000)));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

}  // namespace
}  // namespace pyrometer
