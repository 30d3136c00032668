// SPDX-License-Identifier: Apache-2.0
#include "export/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pyrometer {
namespace {

using Clock = std::chrono::steady_clock;
using testing::ElementsAre;
using testing::Pair;

// No test waits for so long, unless it fails.
Clock::time_point Late() {
  return Clock::now() + std::chrono::minutes(1);
}

std::shared_ptr<const Profile> NumberedProfile(uint32_t number) {
  auto profile = std::make_shared<Profile>();
  profile->frequency = Hertz{number};
  return profile;
}

// What a sink got and does; outlives the sink, which is its outbox's.
class SinkScript {
 public:
  // Sends stop here until they are let go or cancelled.
  void Hold() { Set(held_, true); }
  void LetGo() { Set(held_, false); }
  void FailWith(ErrorCode code) { Set(failure_, std::optional(code)); }

  bool WaitForSends(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, Late(), [&] { return begun_.size() >= count; });
  }
  // Numbers of the profiles whose Send began.
  std::vector<uint32_t> begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

  Result<void> Send(const Profile& profile) {
    std::unique_lock lock(mutex_);
    begun_.push_back(profile.frequency.value);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_ || cancelled_; });
    if (cancelled_) return Fail(ErrorCode::kIo, "cancelled");
    if (failure_) return Fail(*failure_, "refused");
    return {};
  }
  void Cancel() { Set(cancelled_, true); }

 private:
  template <typename T>
  void Set(T& member, T value) {
    const std::lock_guard lock(mutex_);
    member = value;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint32_t> begun_;
  bool held_ = false;
  bool cancelled_ = false;
  std::optional<ErrorCode> failure_;
};

class ScriptedSink final : public ProfileSink {
 public:
  explicit ScriptedSink(SinkScript& script) : script_(script) {}
  Result<void> Send(const Profile& profile) override { return script_.Send(profile); }
  void Cancel() override { script_.Cancel(); }

 private:
  SinkScript& script_;
};

uint64_t Total(const OutboxCounts& counts) {
  uint64_t total = counts.sent + counts.dropped;
  for (const auto& [code, count] : counts.failed) total += count;
  return total;
}

TEST(Outbox, SendsWhatIsOfferedInOrder) {
  SinkScript script;
  Outbox outbox(std::make_unique<ScriptedSink>(script), 10);
  for (uint32_t i = 1; i <= 3; ++i) outbox.Offer(NumberedProfile(i));
  outbox.Close(Late());
  EXPECT_THAT(script.begun(), ElementsAre(1, 2, 3));
  EXPECT_EQ(outbox.counts().offered, 3);
  EXPECT_EQ(outbox.counts().sent, 3);
  EXPECT_EQ(outbox.counts().dropped, 0);
}

TEST(Outbox, DropsTheOldestBehindASinkThatHangs) {
  SinkScript script;
  script.Hold();
  Outbox outbox(std::make_unique<ScriptedSink>(script), 2);
  outbox.Offer(NumberedProfile(1));
  ASSERT_TRUE(script.WaitForSends(1));
  for (uint32_t i = 2; i <= 5; ++i) outbox.Offer(NumberedProfile(i));
  EXPECT_EQ(outbox.counts().dropped, 2);
  script.LetGo();
  outbox.Close(Late());
  EXPECT_THAT(script.begun(), ElementsAre(1, 4, 5));
  EXPECT_EQ(outbox.counts().sent, 3);
  EXPECT_EQ(Total(outbox.counts()), outbox.counts().offered);
}

TEST(Outbox, CountsFailuresByErrorAndGoesOn) {
  SinkScript script;
  Outbox outbox(std::make_unique<ScriptedSink>(script), 10);
  script.FailWith(ErrorCode::kPermission);
  outbox.Offer(NumberedProfile(1));
  outbox.Offer(NumberedProfile(2));
  outbox.Close(Late());
  EXPECT_THAT(script.begun(), ElementsAre(1, 2));
  EXPECT_THAT(outbox.counts().failed, ElementsAre(Pair(ErrorCode::kPermission, 2)));
  EXPECT_EQ(outbox.counts().last_error, "refused");
  EXPECT_EQ(outbox.counts().sent, 0);
}

TEST(Outbox, OfASinkThatHangsOrFailsDelaysNoOther) {
  SinkScript hanging;
  SinkScript failing;
  SinkScript good;
  hanging.Hold();
  failing.FailWith(ErrorCode::kIo);
  Outbox first(std::make_unique<ScriptedSink>(hanging), 1);
  Outbox second(std::make_unique<ScriptedSink>(failing), 100);
  Outbox third(std::make_unique<ScriptedSink>(good), 100);
  for (uint32_t i = 1; i <= 50; ++i) {
    const std::shared_ptr<const Profile> profile = NumberedProfile(i);
    for (Outbox* outbox : {&first, &second, &third}) outbox->Offer(profile);
  }
  ASSERT_TRUE(good.WaitForSends(50));
  third.Close(Late());
  second.Close(Late());
  EXPECT_EQ(third.counts().sent, 50);
  EXPECT_THAT(second.counts().failed, ElementsAre(Pair(ErrorCode::kIo, 50)));
  first.Close(Clock::now());
  EXPECT_EQ(first.counts().sent, 0);
  EXPECT_EQ(Total(first.counts()), 50);
}

TEST(Outbox, CountsWhatItCouldNotSendUntilTheDeadline) {
  SinkScript script;
  script.Hold();
  Outbox outbox(std::make_unique<ScriptedSink>(script), 10);
  for (uint32_t i = 1; i <= 4; ++i) outbox.Offer(NumberedProfile(i));
  ASSERT_TRUE(script.WaitForSends(1));
  outbox.Close(Clock::now() + std::chrono::milliseconds(1));
  EXPECT_THAT(script.begun(), ElementsAre(1));
  EXPECT_EQ(outbox.counts().dropped, 3);
  EXPECT_THAT(outbox.counts().failed, ElementsAre(Pair(ErrorCode::kIo, 1)));
}

TEST(Outbox, DropsWhatIsOfferedAfterItsEnd) {
  SinkScript script;
  Outbox outbox(std::make_unique<ScriptedSink>(script), 10);
  outbox.Close(Late());
  outbox.Offer(NumberedProfile(1));
  outbox.Close(Late());
  EXPECT_EQ(outbox.counts().offered, 1);
  EXPECT_EQ(outbox.counts().dropped, 1);
  EXPECT_TRUE(script.begun().empty());
}

TEST(Outbox, EndsWithoutBeingClosed) {
  SinkScript script;
  script.Hold();
  {
    Outbox outbox(std::make_unique<ScriptedSink>(script), 10);
    outbox.Offer(NumberedProfile(1));
    ASSERT_TRUE(script.WaitForSends(1));
  }
  EXPECT_THAT(script.begun(), ElementsAre(1));
}

}  // namespace
}  // namespace pyrometer
