// SPDX-License-Identifier: Apache-2.0
#include "base/circuit_breaker.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using std::chrono::seconds;

constexpr CircuitBreaker::Pauses kPauses{.first = seconds(1), .longest = seconds(5)};

MonotonicTime Second(uint64_t second) {
  return MonotonicTime(second * 1'000'000'000);
}

TEST(CircuitBreaker, AdmitsEverythingWhileNothingFails) {
  CircuitBreaker breaker;
  EXPECT_TRUE(breaker.Admit(Second(1)));
  EXPECT_TRUE(breaker.Admit(Second(1)));
  EXPECT_FALSE(breaker.is_open());
}

TEST(CircuitBreaker, AdmitsOneAttemptAfterAPause) {
  CircuitBreaker breaker;
  breaker.Failed(kPauses, Second(10));
  EXPECT_TRUE(breaker.is_open());
  EXPECT_FALSE(breaker.Admit(Second(10)));
  EXPECT_TRUE(breaker.Admit(Second(11)));
  EXPECT_FALSE(breaker.Admit(Second(99))) << "the one attempt is under way";
}

TEST(CircuitBreaker, DoublesThePauseWithEachFailedAttempt) {
  CircuitBreaker breaker;
  breaker.Failed(kPauses, Second(0));
  uint64_t now = 0;
  for (const uint64_t pause : {1, 2, 4, 5, 5}) {
    EXPECT_FALSE(breaker.Admit(MonotonicTime(Second(now + pause).value() - 1)));
    EXPECT_TRUE(breaker.Admit(Second(now + pause))) << pause;
    now += pause;
    breaker.Failed(kPauses, Second(now));
  }
}

TEST(CircuitBreaker, CountsWhatBeganTogetherAsOneFailure) {
  CircuitBreaker breaker;
  breaker.Failed(kPauses, Second(0));
  breaker.Failed(kPauses, Second(0));
  EXPECT_TRUE(breaker.Admit(Second(1)));
}

TEST(CircuitBreaker, IsAsNewAfterASuccess) {
  CircuitBreaker breaker;
  breaker.Failed(kPauses, Second(0));
  ASSERT_TRUE(breaker.Admit(Second(1)));
  breaker.Failed(kPauses, Second(1));
  breaker.Succeeded();
  EXPECT_TRUE(breaker.Admit(Second(1)));
  breaker.Failed(kPauses, Second(1));
  EXPECT_TRUE(breaker.Admit(Second(2))) << "the first pause again";
}

TEST(CircuitBreaker, AdmitsAnotherAttemptInPlaceOfOneThatWasNotMade) {
  CircuitBreaker breaker;
  breaker.Failed(kPauses, Second(0));
  ASSERT_TRUE(breaker.Admit(Second(1)));
  breaker.Withdrawn();
  EXPECT_TRUE(breaker.Admit(Second(1)));
}

}  // namespace
}  // namespace pyrometer
