// SPDX-License-Identifier: Apache-2.0
#include "export/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>

#include "tests/unit/export/delivery_fixture.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

// A place where deliveries are held until it opens.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    opened_.wait(lock, [this] { return is_open_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  uint64_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
  uint64_t waiting_ = 0;
};

TEST_F(OutboxTest, DeliversWhatItIsOffered) {
  ScriptedSink sink;
  const auto outbox = Make(sink);
  outbox->Offer(WindowOf({ProfileNamed("a", 3), ProfileNamed("b", 4)}));
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.delivered == 7; }));
  const DeliveryCounters counters = outbox->counters();
  EXPECT_TRUE(IsBalanced(counters));
  EXPECT_EQ(counters.parcels_delivered, 2);
  EXPECT_EQ(counters.bytes_delivered, 18);
  EXPECT_EQ(counters.attempts, 2);
  EXPECT_EQ(counters.retries, 0);
  EXPECT_FALSE(counters.oldest_waiting.has_value());
  EXPECT_EQ(counters.last_success, clock_.WallNow());
  EXPECT_THAT(sink.delivered(), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(log_.Text(), HasSubstr("sink test: the first profile has arrived: "));
}

TEST_F(OutboxTest, SendsSeveralAtOnceAgainAfterAnOutage) {
  constexpr int kThreads = 4;
  constexpr uint64_t kRefused = 40;
  constexpr uint64_t kHeld = 60;
  const Clock real;
  Gate gate;
  std::atomic<uint64_t> calls = 0;
  std::atomic<const Outbox*> own = nullptr;
  ScriptedSink sink([&](const Parcel&) {
    const uint64_t call = calls++;
    if (call == kRefused) return Refused();
    // Those that are under way by then are answered within the outage, however long a thread takes
    // to tell of it: they do not count for its end.
    if (call > kRefused)
      Eventually([&] { return own.load()->counters().last_failure.has_value(); });
    if (call >= kHeld) gate.Pass();
    return Taken();
  });
  OutboxOptions options;
  options.name = "test";
  options.concurrency = kThreads;
  options.retry = {.min_backoff = milliseconds(1), .max_backoff = milliseconds(5)};
  Outbox outbox(options, sink, real, log_.log());
  own = &outbox;
  for (uint64_t i = 0; i < kRefused; ++i) {  // all threads are there before it
    outbox.Offer(WindowOf(std::vector<Profile>(1, ProfileNamed("a", 1))));
    std::this_thread::sleep_for(milliseconds(1));
  }
  outbox.Offer(WindowOf(std::vector<Profile>(100, ProfileNamed("a", 1))));
  EXPECT_TRUE(Eventually([&] { return gate.waiting() == kThreads; }));
  gate.Open();
  EXPECT_TRUE(Eventually([&] { return outbox.counters().ticks.in_memory == 0; }));
}

// Nobody offers anything at the end: a thread that is not woken, or waits for too long, stays so.
TEST_F(OutboxTest, ForgetsNobodyWhoWaitsForATurn) {
  constexpr int kWindows = 60;
  constexpr int kProfiles = 20;
  const Clock real;
  std::atomic<uint64_t> calls = 0;
  ScriptedSink sink([&](const Parcel&) {
    const uint64_t call = calls++;
    if (call % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(call % 500));
    return call % 50 == 49 ? Refused() : Taken();
  });
  OutboxOptions options;
  options.name = "test";
  options.concurrency = 8;
  options.max_windows = kWindows;
  options.jitter = milliseconds(15);
  options.retry = {.min_backoff = milliseconds(1), .max_backoff = milliseconds(5)};
  options.max_refusals = 1000;
  Outbox outbox(options, sink, real, log_.log());
  for (int i = 0; i < kWindows; ++i) {
    outbox.Offer(WindowOf(std::vector<Profile>(kProfiles, ProfileNamed("a", 1))));
    std::this_thread::sleep_for(milliseconds(i % 8));
  }
  EXPECT_TRUE(
      Eventually([&] { return outbox.counters().ticks.delivered == kWindows * kProfiles; }));
  EXPECT_TRUE(IsBalanced(outbox.counters()));
}

TEST_F(OutboxTest, BalancesAtEveryMomentAnybodyLooks) {
  std::atomic<uint64_t> calls = 0;
  ScriptedSink sink([&](const Parcel&) {
    const uint64_t call = calls++;
    if (call % 7 == 3) return Rejected();
    if (call % 11 == 5) return Unanswered();
    Receipt receipt;
    receipt.rejected_samples = call % 5;
    return receipt;
  });
  const auto outbox = Make(sink);
  std::atomic<bool> is_over = false;
  std::atomic<uint64_t> unbalanced = 0;
  std::jthread looking([&] {
    while (!is_over) {
      if (!IsBalanced(outbox->counters())) ++unbalanced;
    }
  });
  for (int i = 0; i < 300; ++i) Offer(*outbox, std::to_string(i), 10);
  EXPECT_TRUE(
      PassUntil(*outbox, seconds(1), [&] { return outbox->counters().ticks.in_memory == 0; }));
  is_over = true;
  looking.join();
  EXPECT_EQ(unbalanced, 0);
  EXPECT_EQ(outbox->counters().ticks.offered, 3000);
}

TEST_F(OutboxTest, SendsSeveralParcelsAtATimeButNoMoreThanItMay) {
  Gate gate;
  ScriptedSink sink;
  const auto outbox = Make(sink, {.concurrency = 4});
  for (int i = 0; i < 8; ++i) Offer(*outbox, "warm " + std::to_string(i), 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  sink.Become([&](const Parcel&) {
    gate.Pass();
    return Taken();
  });
  std::vector<Profile> profiles;
  for (int i = 0; i < 20; ++i) profiles.push_back(ProfileNamed(std::to_string(i), 1));
  outbox->Offer(WindowOf(std::move(profiles)));
  EXPECT_TRUE(Eventually([&] { return gate.waiting() == 4; }));
  EXPECT_EQ(outbox->counters().under_way, 4);
  gate.Open();
  EXPECT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_EQ(sink.most_under_way(), 4);
}

TEST_F(OutboxTest, DropsTheOldestParcelsWhenMemoryIsFull) {
  ScriptedSink sink([](const Parcel&) { return Refused(); });
  sink.padding = 1000;
  const auto outbox = Make(sink, {.max_memory = 10'000});
  for (int i = 0; i < 100; ++i) {
    Offer(*outbox, std::to_string(i), 1);
    ASSERT_TRUE(Eventually([&] { return outbox->counters().windows_waiting == 0; }));
    EXPECT_LE(outbox->counters().bytes_in_memory, 10'000);
  }
  const DeliveryCounters counters = outbox->counters();
  EXPECT_GE(counters.ticks.in_memory, 5);
  EXPECT_EQ(counters.ticks.dropped.at("queue_full") + counters.ticks.in_memory, 100);
  sink.Become([](const Parcel&) { return Taken(); });
  ASSERT_TRUE(
      PassUntil(*outbox, seconds(1), [&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_THAT(sink.delivered(), testing::Contains("99"));
}

TEST_F(OutboxTest, DropsWhatIsTooOldToBeAccepted) {
  ScriptedSink sink([](const Parcel&) { return Refused(); });
  const auto outbox = Make(sink, {.max_age = minutes(55)});
  Offer(*outbox, "old", 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  clock_.Pass(minutes(56));
  sink.Become([](const Parcel&) { return Taken(); });
  Offer(*outbox, "new", 2);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("too_old", 1)));
  EXPECT_THAT(sink.delivered(), ElementsAre("new"));
}

TEST_F(OutboxTest, GoesOnWhenTheWallClockIsSetByHours) {
  for (const auto step : {std::chrono::hours(30), std::chrono::hours(-30)}) {
    std::atomic<bool> is_up = false;
    ScriptedSink sink([&](const Parcel&) { return is_up ? Taken() : Refused(); });
    const auto outbox = Make(sink, {.max_age = minutes(55)});
    Offer(*outbox, "before", 1);
    ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
    clock_.StepWall(step);
    Offer(*outbox, "after", 1);
    is_up = true;
    ASSERT_TRUE(PassUntil(*outbox, milliseconds(100),
                          [&] { return outbox->counters().ticks.delivered == 2; }));
  }
}

TEST_F(OutboxTest, NeverMakesTheCallerWaitAndDropsTheWindowsItCannotPack) {
  Gate gate;
  class SlowToPack : public ScriptedSink {
   public:
    explicit SlowToPack(Gate& gate) : gate_(gate) {}
    Packed Pack(const Profile& profile) const override {
      gate_.Pass();
      return ScriptedSink::Pack(profile);
    }

   private:
    Gate& gate_;
  };
  SlowToPack sink(gate);
  const auto outbox = Make(sink, {.max_windows = 3});
  Offer(*outbox, "first", 1);
  ASSERT_TRUE(Eventually([&] { return gate.waiting() == 1; }));
  for (int i = 0; i < 10; ++i) Offer(*outbox, std::to_string(i), 1);
  EXPECT_EQ(outbox->counters().windows_waiting, 4);
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("not_packed", 7)));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
  gate.Open();
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_THAT(sink.delivered(), UnorderedElementsAre("first", "7", "8", "9"));
}

TEST_F(OutboxTest, CountsWhatASinkCannotEncode) {
  class Picky : public ScriptedSink {
   public:
    Packed Pack(const Profile& profile) const override {
      Packed packed = ScriptedSink::Pack(profile);
      packed.parcels.front().samples -= 5;  // of which it tells about three
      packed.dropped["label_limit"] = 3;
      return packed;
    }
  };
  Picky sink;
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 10);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_EQ(outbox->counters().ticks.delivered, 5);
  EXPECT_THAT(outbox->counters().ticks.dropped,
              ElementsAre(Pair("label_limit", 3), Pair("not_encoded", 2)));
}

TEST_F(OutboxTest, CountsWhatASinkChangesAndTellsOfItOnce) {
  class Tailor : public ScriptedSink {
   public:
    Packed Pack(const Profile& profile) const override {
      Packed packed = ScriptedSink::Pack(profile);
      packed.altered["label_shortened"] = 2;
      return packed;
    }
  };
  Tailor sink;
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.delivered == 1; }));
  clock_.Pass(minutes(10));
  Offer(*outbox, "b", 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.delivered == 2; }));
  outbox->Close(clock_.Now());
  EXPECT_THAT(outbox->counters().altered, ElementsAre(Pair("label_shortened", 4)));
  EXPECT_THAT(log_.Text(), HasSubstr("sink test: changes what does not fit (label_shortened)"));
  EXPECT_EQ(log_.Text().find("label_shortened"), log_.Text().rfind("label_shortened"));
}

// Ends with 0 if an outbox that could have no thread at first delivers once it can.
void DeliverOnceThereAreThreads() {
  if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);  // root has no limit
  rlimit threads{};
  ::getrlimit(RLIMIT_NPROC, &threads);
  const rlimit none{.rlim_cur = 0, .rlim_max = threads.rlim_max};
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(3);
  const SteppedClock clock;
  ReadableLog log(clock);
  ScriptedSink sink;
  Outbox outbox({.name = "test"}, sink, clock, log.log());
  outbox.Offer(WindowOf({ProfileNamed("a", 1)}));
  if (outbox.counters().windows_waiting != 1) ::_exit(4);
  ::setrlimit(RLIMIT_NPROC, &threads);
  outbox.Offer(WindowOf({ProfileNamed("b", 1)}));
  if (!Eventually([&] { return outbox.counters().ticks.delivered == 2; })) ::_exit(5);
  ::_exit(0);
}

TEST_F(OutboxTest, WaitsForThreadsThatCannotBeHadNow) {
  EXPECT_EXIT(DeliverOnceThereAreThreads(), testing::ExitedWithCode(0), "");
}

TEST_F(OutboxTest, IsNotDelayedByASinkThatHangs) {
  Gate gate;
  ScriptedSink hanging([&](const Parcel&) {
    gate.Pass();
    return Unanswered();
  });
  ScriptedSink good;
  const auto slow = Make(hanging);
  const auto fast = Make(good);
  for (int i = 0; i < 50; ++i) {
    const auto window = WindowOf({ProfileNamed(std::to_string(i), 1)});
    slow->Offer(window);
    fast->Offer(window);
    ASSERT_TRUE(Eventually([&] { return good.delivered().size() == static_cast<size_t>(i) + 1; }));
  }
  EXPECT_EQ(slow->counters().ticks.delivered, 0);
  EXPECT_TRUE(IsBalanced(slow->counters()));
  gate.Open();
}

TEST_F(OutboxTest, WaitsARandomTimeBeforeAWindowsParcelsGoOut) {
  ScriptedSink sink;
  const auto outbox = Make(sink, {.jitter = std::chrono::hours(2)});
  for (int i = 0; i < 4; ++i) Offer(*outbox, std::to_string(i), 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().parcels_in_memory != 0; }));
  ASSERT_TRUE(
      PassUntil(*outbox, minutes(1), [&] { return outbox->counters().ticks.in_memory == 0; }));
  EXPECT_EQ(sink.delivered().size(), 4);
}

TEST_F(OutboxTest, SendsEverythingBeforeItCloses) {
  const Clock clock;
  ScriptedSink sink;
  Outbox outbox({.name = "test", .jitter = std::chrono::hours(1)}, sink, clock, log_.log());
  for (int i = 0; i < 5; ++i) outbox.Offer(WindowOf({ProfileNamed(std::to_string(i), 1)}));
  outbox.Close(After(clock.Now(), minutes(1)));
  EXPECT_EQ(outbox.counters().ticks.delivered, 5);
  outbox.Offer(WindowOf({ProfileNamed("late", 2)}));
  EXPECT_THAT(outbox.counters().ticks.dropped, ElementsAre(Pair("shutdown", 2)));
  EXPECT_TRUE(IsBalanced(outbox.counters()));
}

TEST_F(OutboxTest, ClosesEarlyIfTheSinkWillNotBeAskedBeforeTheDeadline) {
  const Clock clock;
  ScriptedSink sink([](const Parcel&) {
    Receipt receipt = Refused();
    receipt.retry_after = minutes(5);
    return receipt;
  });
  Outbox outbox({.name = "test"}, sink, clock, log_.log());
  outbox.Offer(WindowOf({ProfileNamed("a", 1)}));
  outbox.Close(After(clock.Now(), minutes(4)));  // the test's own time limit is shorter
  EXPECT_THAT(outbox.counters().ticks.dropped, ElementsAre(Pair("shutdown", 1)));
}

TEST_F(OutboxTest, CancelsWhatHangsWhenItCloses) {
  Gate gate;
  class Hanging : public ScriptedSink {
   public:
    explicit Hanging(Gate& gate)
        : ScriptedSink([&gate](const Parcel&) {
            gate.Pass();
            return Unanswered();
          }),
          gate_(gate) {}
    void Cancel() override { gate_.Open(); }

   private:
    Gate& gate_;
  };
  Hanging sink(gate);
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 1);
  ASSERT_TRUE(Eventually([&] { return gate.waiting() == 1; }));
  Offer(*outbox, "b", 2);
  outbox->Close(clock_.Now());
  EXPECT_THAT(outbox->counters().ticks.dropped,
              ElementsAre(Pair("maybe_arrived", 1), Pair("shutdown", 2)));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
  EXPECT_EQ(log_.Text(), "") << "what was cancelled is no failure of the sink's";
}

TEST_F(OutboxTest, KnowsHowFarBehindItIs) {
  ScriptedSink sink([](const Parcel&) { return Refused(); });
  const auto outbox = Make(sink);
  const auto begin = clock_.WallNow();
  Offer(*outbox, "first", 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  clock_.Pass(seconds(10));
  Offer(*outbox, "second", 1);
  EXPECT_EQ(outbox->counters().oldest_waiting, begin);
}

TEST_F(OutboxTest, TellsOfTheEndOfAnOutage) {
  std::atomic<bool> is_up = false;
  ScriptedSink sink([&](const Parcel&) { return is_up ? Taken() : Refused(); });
  const auto outbox = Make(sink);
  Offer(*outbox, "a", 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  is_up = true;
  Pass(*outbox, seconds(181));
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.delivered == 1; }));
  outbox->Close(clock_.Now());
  EXPECT_THAT(log_.Text(), HasSubstr("cannot be reached, or is busy (unavailable): come again\n"));
  EXPECT_THAT(log_.Text(), HasSubstr("sink test: works again after 181 s\n"));
}

TEST_F(OutboxTest, BoundsTheReasonsThatASinkMakesUp) {
  std::atomic<int> calls = 0;
  ScriptedSink sink([&](const Parcel&) {
    Receipt receipt = Rejected();
    receipt.reason = "reason\n" + std::to_string(calls++);
    return receipt;
  });
  const auto outbox = Make(sink);
  for (int i = 0; i < 100; ++i) {
    Offer(*outbox, std::to_string(i), 1);
    ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.in_memory == 0; }));
  }
  EXPECT_LE(outbox->counters().ticks.dropped.size(), 33);
  EXPECT_TRUE(IsBalanced(outbox->counters()));
  EXPECT_THAT(outbox->counters().last_failure->reason, Not(HasSubstr("\n")));
}

TEST_F(OutboxTest, StartsEachOfItsThreadsAsItIsTold) {
  std::atomic<int> threads = 0;
  ScriptedSink sink;
  OutboxOptions options;
  options.on_thread_start = [&] { ++threads; };
  const auto outbox = Make(sink, std::move(options));
  Offer(*outbox, "a", 1);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().ticks.delivered == 1; }));
  EXPECT_EQ(threads, 2) << "one packs and one delivers; no other was needed";
}

}  // namespace
}  // namespace pyrometer
