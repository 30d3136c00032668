// SPDX-License-Identifier: Apache-2.0
// A destination and a clock that a test commands, and what every test of deliveries asks.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "export/delivery_counters.h"
#include "export/outbox.h"
#include "pyrometer/sink.h"
#include "tests/shared/eventually.h"

namespace pyrometer {

// Stands still unless it is moved.
class SteppedClock : public Clock {
 public:
  MonotonicTime Now() const override { return MonotonicTime(now_); }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::time_point(std::chrono::nanoseconds(wall_.load()));
  }
  void Pass(std::chrono::nanoseconds time) {
    now_ += static_cast<uint64_t>(time.count());
    wall_ += time.count();
  }
  void StepWall(std::chrono::nanoseconds time) { wall_ += time.count(); }

 private:
  std::atomic<uint64_t> now_{1'000'000'000'000'000};
  std::atomic<int64_t> wall_{1'900'000'000'000'000'000};
};

// Makes a parcel of every profile; what becomes of it is the test's to say.
class ScriptedSink : public ProfileSink {
 public:
  using Script = std::function<Receipt(const Parcel&)>;

  explicit ScriptedSink(Script script = [](const Parcel&) { return Receipt{}; })
      : script_(std::move(script)) {}

  Packed Pack(const Profile& profile) const override {
    Parcel parcel{.body = "body of " + profile.labels.front().second,
                  .series = profile.labels.front().second,
                  .begin = profile.begin};
    for (const ProfileSample& sample : profile.samples) parcel.samples += sample.count;
    parcel.body.resize(std::max(parcel.body.size(), padding));
    return {.parcels = {std::move(parcel)}, .dropped = {}};
  }

  Receipt Deliver(const Parcel& parcel) override {
    Script script;
    {
      const std::lock_guard lock(mutex_);
      ++attempts_;
      most_under_way_ = std::max(most_under_way_, ++under_way_);
      script = script_;
    }
    const Receipt receipt = script(parcel);
    const std::lock_guard lock(mutex_);
    --under_way_;
    if (receipt.outcome == Outcome::kDelivered) delivered_.push_back(parcel.series);
    return receipt;
  }

  void Cancel() override { cancelled = true; }

  void Become(Script script) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  std::vector<std::string> delivered() const {
    const std::lock_guard lock(mutex_);
    return delivered_;
  }
  uint64_t attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }
  uint64_t most_under_way() const {
    const std::lock_guard lock(mutex_);
    return most_under_way_;
  }

  std::atomic<bool> cancelled = false;
  size_t padding = 0;  // bytes that a body has at least

 private:
  mutable std::mutex mutex_;
  Script script_;
  std::vector<std::string> delivered_;
  uint64_t attempts_ = 0;
  uint64_t under_way_ = 0;
  uint64_t most_under_way_ = 0;
};

inline Receipt Taken() {
  return {};
}
inline Receipt Refused() {
  return {.outcome = Outcome::kNotArrived, .reason = "unavailable", .message = "come again"};
}
inline Receipt Unanswered() {
  return {.outcome = Outcome::kMaybeArrived, .reason = "timeout", .message = "no answer"};
}
inline Receipt Rejected() {
  return {.outcome = Outcome::kRejected, .reason = "http_400", .message = "bad label"};
}

// A profile that ScriptedSink makes the parcel `name` of.
inline Profile ProfileNamed(const std::string& name, uint64_t ticks,
                            std::chrono::system_clock::time_point begin = {}) {
  Profile profile;
  profile.labels = {{"service_name", name}};
  profile.begin = begin;
  ProfileSample sample;
  sample.count = ticks;
  profile.samples.push_back(sample);
  return profile;
}

inline std::shared_ptr<const std::vector<Profile>> WindowOf(std::vector<Profile> profiles) {
  return std::make_shared<const std::vector<Profile>>(std::move(profiles));
}

inline uint64_t Sum(const std::map<std::string, uint64_t>& dropped) {
  return std::accumulate(dropped.begin(), dropped.end(), uint64_t{0},
                         [](uint64_t sum, const auto& one) { return sum + one.second; });
}

inline bool IsBalanced(const DeliveryTicks& ticks) {
  return ticks.offered == ticks.delivered + Sum(ticks.dropped) + ticks.in_memory + ticks.spooled;
}

inline bool IsBalanced(const DeliveryCounters& counters) {
  return IsBalanced(counters.ticks) && IsBalanced(counters.found_in_spool) &&
         counters.found_in_spool.in_memory == 0;
}

// A log whose lines can be read while others write.
class ReadableLog {
 public:
  explicit ReadableLog(const Clock& clock)
      : log_(clock, std::chrono::seconds(30), std::make_shared<spdlog::logger>("test", lines_)) {
    lines_->set_pattern("%v");
  }
  Log& log() { return log_; }
  std::string Text() const { return lines_->Text(); }

 private:
  class Lines : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::string Text() {
      const std::lock_guard lock(mutex_);
      return text_;
    }

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      spdlog::memory_buf_t line;
      formatter_->format(message, line);
      text_.append(line.data(), line.size());
    }
    void flush_() override {}

    std::string text_;
  };

  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
  Log log_;
};

// Waiting for an outbox moves its clock, by as much as the machine lets it wait: in most tests
// nothing is so old that it may be dropped for it.
inline constexpr std::chrono::hours kForEver{1'000'000};

// Outboxes without a spool.
class OutboxTest : public testing::Test {
 protected:
  // With the default for it nothing is too old.
  std::unique_ptr<Outbox> Make(ProfileSink& sink, OutboxOptions options = {}) {
    options.name = "test";
    if (options.max_age == OutboxOptions().max_age) options.max_age = kForEver;
    return std::make_unique<Outbox>(std::move(options), sink, clock_, log_.log());
  }
  void Offer(Outbox& outbox, const std::string& name, uint64_t ticks) {
    outbox.Offer(WindowOf({ProfileNamed(name, ticks, clock_.WallNow())}));
  }
  // Lets time pass, and the outbox notice it.
  void Pass(Outbox& outbox, std::chrono::nanoseconds time) {
    clock_.Pass(time);
    outbox.Offer(WindowOf({}));
  }
  // Until the outbox has done what it can, each step takes a little time.
  bool PassUntil(Outbox& outbox, std::chrono::nanoseconds step,
                 const std::function<bool()>& holds) {
    return Eventually([&] {
      Pass(outbox, step);
      return holds();
    });
  }

  SteppedClock clock_;
  ReadableLog log_{clock_};
};

}  // namespace pyrometer
