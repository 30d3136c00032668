// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>

namespace pyrometer {
namespace {

class MovedClock : public Clock {
 public:
  MonotonicTime Now() const override { return now; }
  MonotonicTime now{1'000'000'000'000};
};

class LogTest : public testing::Test {
 protected:
  LogTest() { logger_->set_pattern("%v"); }

  void Fail() { log_.Failed("draining", Error(ErrorCode::kIo, "no memory")); }
  std::string Told() {
    logger_->flush();
    return std::exchange(text_, std::ostringstream()).str();
  }

  MovedClock clock_;
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> logger_ = std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
  Log log_{clock_, std::chrono::seconds(30), logger_};
};

TEST_F(LogTest, TellsOnceWhatGoesWrongAgainAndAgain) {
  Fail();
  EXPECT_EQ(Told(), "draining: no memory\n");
  Fail();
  Fail();
  EXPECT_EQ(Told(), "");
  clock_.now = After(clock_.now, std::chrono::seconds(31));
  Fail();
  EXPECT_EQ(Told(), "draining: no memory (2 more times since this was last said)\n");
}

TEST_F(LogTest, TellsMoreAndMoreSeldomWhatDoesNotEnd) {
  int told = 0;
  const auto fail_for = [&](std::chrono::seconds time) {
    for (std::chrono::seconds passed(0); passed < time; passed += std::chrono::seconds(10)) {
      Fail();
      if (!Told().empty()) ++told;
      clock_.now = After(clock_.now, std::chrono::seconds(10));
    }
    return std::exchange(told, 0);
  };
  EXPECT_EQ(fail_for(std::chrono::hours(1)), 7);  // after 0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5 min
  EXPECT_LE(fail_for(std::chrono::hours(24)), 25);
  // Once it has ended, it is news again.
  clock_.now = After(clock_.now, std::chrono::hours(2));
  EXPECT_EQ(fail_for(std::chrono::minutes(1)), 2);
}

TEST_F(LogTest, TellsSeldomWhatHappensSeldomButDoesNotEnd) {
  int told = 0;
  for (int i = 0; i < 24 * 12; ++i) {  // every five minutes of a day
    Fail();
    if (!Told().empty()) ++told;
    clock_.now = After(clock_.now, std::chrono::minutes(5));
  }
  EXPECT_LE(told, 30);
}

TEST_F(LogTest, TellsWhatHappensAgainAfterGoodNews) {
  log_.Warn("sink a: is away", "refused");
  log_.Tell("sink a", "works again");
  Told();
  log_.Warn("sink a: is away", "refused");
  EXPECT_EQ(Told(), "sink a: is away: refused\n");
}

TEST_F(LogTest, KeepsOneTroubleFromHidingAnother) {
  Fail();
  log_.Warn("looking", "gone");
  EXPECT_EQ(Told(), "draining: no memory\nlooking: gone\n");
}

}  // namespace
}  // namespace pyrometer
