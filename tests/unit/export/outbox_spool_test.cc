// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "export/outbox.h"
#include "export/spool_directory.h"
#include "tests/unit/export/outbox_spool_fixture.h"

namespace pyrometer {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST_F(OutboxSpoolTest, DeliversEverythingOnceAfterAnOutageOfThreeMinutes) {
  ScriptedSink sink(RefuseAll);
  const auto outbox = Make(sink);
  std::vector<std::string> names;
  for (int window = 0; window < 18; ++window) {
    clock_.Pass(seconds(10));
    names.push_back(std::to_string(window));
    Offer(*outbox, names.back(), 10);
    ASSERT_TRUE(Eventually([&] { return outbox->counters().windows_waiting == 0; }));
    EXPECT_TRUE(IsBalanced(outbox->counters()));
  }
  ASSERT_TRUE(Eventually([&] { return outbox->counters().spool_files >= 16; }));
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_EQ(outbox->counters().ticks.delivered, 180);
  EXPECT_THAT(sink.delivered(), testing::UnorderedElementsAreArray(names));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
  ASSERT_TRUE(Eventually([&] { return FilesInSpool().empty(); }));
  EXPECT_EQ(outbox->counters().spool_bytes, 0);
}

TEST_F(OutboxSpoolTest, KeepsAShortOutageInMemory) {
  ScriptedSink sink(RefuseAll);
  const auto outbox = Make(sink);
  Offer(*outbox, "a");
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  for (int i = 0; i < 29; ++i) {
    clock_.Pass(seconds(1));
    Offer(*outbox, std::to_string(i));
  }
  EXPECT_EQ(outbox->counters().ticks.spooled, 0);
}

TEST_F(OutboxSpoolTest, MovesTheOldestToDiskWhenMemoryIsNearlyFull) {
  std::atomic<bool> is_up = false;
  ScriptedSink sink([&](const Parcel&) { return is_up ? Taken() : Refused(); });
  sink.padding = 1000;
  OutboxOptions options = Options();
  options.max_memory = 20'000;
  const auto outbox = Make(sink, std::move(options));
  ASSERT_TRUE(Eventually([&] { return outbox->counters().has_spool; }));
  for (uint64_t i = 0; i < 100; ++i) {
    Offer(*outbox, std::to_string(i));
    ASSERT_TRUE(Eventually([&] {
      const DeliveryCounters counters = outbox->counters();
      return counters.windows_waiting == 0 && counters.bytes_in_memory < 16'000;
    }));
  }
  EXPECT_GE(outbox->counters().ticks.spooled, 80);
  EXPECT_EQ(Sum(outbox->counters().ticks.dropped), 0);
  is_up = true;
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_EQ(outbox->counters().ticks.delivered, 100);
}

TEST_F(OutboxSpoolTest, DeliversInTheNextRunWhatWasLeftAndKeepsItApart) {
  LeaveInSpool({"a", "b", "c"});
  ScriptedSink sink;
  const auto outbox = Make(sink);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(sink.delivered(), ElementsAre("a", "b", "c")) << "oldest first";
  EXPECT_EQ(outbox->counters().found_in_spool.offered, 3);
  EXPECT_EQ(outbox->counters().found_in_spool.delivered, 3);
  EXPECT_EQ(outbox->counters().ticks.offered, 0);
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST_F(OutboxSpoolTest, SaysWhyAParcelFromTheSpoolWasDropped) {
  LeaveInSpool({"rejected", "unanswered"});
  ScriptedSink sink(
      [](const Parcel& parcel) { return parcel.series == "rejected" ? Rejected() : Unanswered(); });
  const auto outbox = Make(sink);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(outbox->counters().found_in_spool.dropped,
              UnorderedElementsAre(Pair("http_400", 1), Pair("maybe_arrived", 1)));
}

TEST_F(OutboxSpoolTest, StowsAwayWindowsThatWereNotEvenPacked) {
  const Clock clock;
  ScriptedSink sink(RefuseAll);
  {
    Outbox outbox(Options(), sink, clock, log_.log());
    outbox.Offer(WindowOf({ProfileNamed("a", 2), ProfileNamed("b", 3)}));
    outbox.Offer(WindowOf({ProfileNamed("c", 4)}));
    outbox.Close(clock.Now());
    EXPECT_EQ(outbox.counters().ticks.spooled, 9);
    EXPECT_TRUE(IsBalanced(outbox.counters()));
  }
  EXPECT_EQ(FilesInSpool().size(), 2);
}

TEST_F(OutboxSpoolTest, SendsFreshParcelsBeforeThoseInTheSpool) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("left " + std::to_string(i));
  LeaveInSpool(names);
  ScriptedSink sink(RefuseAll);
  const auto outbox = Make(sink);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  Offer(*outbox, "fresh");
  ASSERT_TRUE(Eventually([&] { return outbox->counters().parcels_in_memory == 1; }));
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  const std::vector<std::string> delivered = sink.delivered();
  EXPECT_LE(std::ranges::find(delivered, "fresh") - delivered.begin(), 2);
  EXPECT_EQ(delivered.size(), 21);
}

TEST_F(OutboxSpoolTest, DoesNotLetOneParcelThatIsRefusedForEverKeepTheSpoolWaiting) {
  LeaveInSpool({"poison", "a", "b", "c", "d"});
  ScriptedSink sink(
      [](const Parcel& parcel) { return parcel.series == "poison" ? Refused() : Taken(); });
  OutboxOptions options = Options();
  options.max_refusals = 2;
  const auto outbox = Make(sink, std::move(options));
  ASSERT_TRUE(PassUntil(*outbox, seconds(1),
                        [&] { return outbox->counters().found_in_spool.delivered == 4; }));
  for (uint64_t i = 1; i <= 5; ++i) {
    Offer(*outbox, std::to_string(i));
    ASSERT_TRUE(
        PassUntil(*outbox, seconds(1), [&] { return outbox->counters().ticks.delivered == i; }));
    const uint64_t attempts = sink.attempts();
    ASSERT_TRUE(PassUntil(*outbox, seconds(100), [&] {
      return outbox->counters().spool_files == 0 || sink.attempts() > attempts;
    }));
  }
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(outbox->counters().found_in_spool.dropped, ElementsAre(Pair("refused", 1)));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST_F(OutboxSpoolTest, DropsTheOldestFilesWhenTheSpoolIsFull) {
  ScriptedSink sink(RefuseAll);
  sink.padding = 1000;
  OutboxOptions options = Options();
  options.spool->max_size = 5'500;
  options.spool_after = {};
  const auto outbox = Make(sink, std::move(options));
  for (uint64_t i = 1; i <= 20; ++i) {
    Offer(*outbox, std::to_string(i));
    ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] {
      const DeliveryCounters counters = outbox->counters();
      return counters.windows_waiting == 0 && counters.ticks.in_memory == 0;
    }));
    EXPECT_LE(outbox->counters().spool_bytes, 5'500);
    EXPECT_TRUE(IsBalanced(outbox->counters()));
  }
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("spool_full", 15)));
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(sink.delivered(), testing::UnorderedElementsAre("16", "17", "18", "19", "20"));
}

TEST_F(OutboxSpoolTest, MakesNoRoomForAWindowThatIsLargerThanTheSpool) {
  LeaveInSpool({"kept"});
  ScriptedSink sink(RefuseAll);
  sink.padding = 10'000;
  OutboxOptions options = Options();
  options.spool->max_size = 5'500;
  options.spool_after = {};
  const auto outbox = Make(sink, std::move(options));
  ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] { return outbox->counters().spool_files == 1; }));
  Offer(*outbox, "large");
  ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] {
    const DeliveryCounters counters = outbox->counters();
    return counters.windows_waiting == 0 && counters.ticks.in_memory == 0;
  }));
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("spool_full", 1)));
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(sink.delivered(), ElementsAre("kept"));
}

TEST_F(OutboxSpoolTest, DropsWhatIsTooOldWhereverTheWallClockStands) {
  for (const auto step : {hours(1), hours(-1)}) {
    LeaveInSpool({"old"});
    ScriptedSink sink(RefuseAll);
    OutboxOptions options = Options();
    options.spool->max_age = hours(3);
    const auto outbox = Make(sink, std::move(options));
    ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
    clock_.StepWall(step);
    clock_.Pass(minutes(179));
    Offer(*outbox, "new");
    ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts >= 2; }));
    EXPECT_EQ(outbox->counters().found_in_spool.spooled, 1);
    ASSERT_TRUE(PassUntil(*outbox, seconds(60),
                          [&] { return outbox->counters().found_in_spool.spooled == 0; }));
    EXPECT_THAT(outbox->counters().found_in_spool.dropped, ElementsAre(Pair("too_old", 1)));
    sink.Become(TakeAll);
    ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  }
}

TEST_F(OutboxSpoolTest, CountsTheAgeOfWhatItFindsFromItsBegin) {
  LeaveInSpool({"old"});
  clock_.Pass(hours(25));
  ScriptedSink sink;
  OutboxOptions options = Options();
  options.spool->max_age = hours(24);
  const auto outbox = Make(sink, std::move(options));
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(outbox->counters().found_in_spool.dropped, ElementsAre(Pair("too_old", 1)));
}

TEST_F(OutboxSpoolTest, DoesNotSendTwiceWhatWasBeingSentWhenItWasKilled) {
  for (const bool at_least_once : {false, true}) {
    LeaveInSpool({"a"});
    BeginSending();
    ScriptedSink sink;
    OutboxOptions options = Options();
    options.retry.at_least_once = at_least_once;
    const auto outbox = Make(sink, std::move(options));
    ASSERT_TRUE(PassUntilNothingWaits(*outbox));
    const DeliveryTicks found = outbox->counters().found_in_spool;
    EXPECT_EQ(found.delivered, at_least_once ? 1 : 0);
    EXPECT_EQ(found.dropped.contains("maybe_arrived"), !at_least_once);
    EXPECT_TRUE(IsBalanced(outbox->counters()));
  }
}

TEST_F(OutboxSpoolTest, TellsTheDiskBeforeItSends) {
  LeaveInSpool({"a"});
  std::optional<SpoolFile::Status> seen;
  ScriptedSink sink([&](const Parcel&) {
    UniqueFd fd = *Open(Spool() + "/" + FilesInSpool().front(), O_RDWR);
    seen = SpoolFile::Open(std::move(fd))->entries()[0].status;
    return Taken();
  });
  const auto outbox = Make(sink);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_EQ(seen, SpoolFile::Status::kSending);
}

}  // namespace
}  // namespace pyrometer
