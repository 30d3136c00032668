// SPDX-License-Identifier: Apache-2.0
#include "foreign/reading_budget.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Payer kAlice{.user = 1000};
constexpr Payer kBob{.user = 1001};
constexpr Payer kSuperuser{.user = 0};
constexpr MonotonicTime kBegin(5'000'000'000);

class ReadingBudgetTest : public testing::Test {
 protected:
  bool MayRead(const Payer& payer, MonotonicTime now) const {
    return budget_.MayRead(payer, ReadingBudget::What::kAll, now);
  }
  static MonotonicTime At(std::chrono::nanoseconds time) { return After(kBegin, time); }

  ReadingBudget budget_{{.each = seconds(10),
                         .users = seconds(15),
                         .each_earns = milliseconds(100),
                         .users_earn = milliseconds(150)}};
};

TEST_F(ReadingBudgetTest, LetsEachSpendWhatItHasAndWhatItEarns) {
  EXPECT_TRUE(MayRead(kAlice, kBegin));
  budget_.Charge(kAlice, seconds(9), kBegin);
  EXPECT_TRUE(MayRead(kAlice, kBegin));
  budget_.Charge(kAlice, seconds(2), kBegin);
  EXPECT_FALSE(MayRead(kAlice, kBegin));
  EXPECT_TRUE(MayRead(kBob, kBegin));
  EXPECT_FALSE(MayRead(kAlice, At(seconds(10))));
  EXPECT_TRUE(MayRead(kAlice, At(seconds(11))));
}

TEST_F(ReadingBudgetTest, EarnsNothingInAdvance) {
  budget_.Charge(kAlice, seconds(1), kBegin);
  budget_.Charge(kAlice, seconds(10), At(std::chrono::hours(1)));
  EXPECT_FALSE(MayRead(kAlice, At(std::chrono::hours(1))));
}

TEST_F(ReadingBudgetTest, HasMoreForHeaders) {
  budget_.Charge(kSuperuser, seconds(10), kBegin);
  EXPECT_FALSE(MayRead(kSuperuser, kBegin));
  EXPECT_TRUE(budget_.MayRead(kSuperuser, ReadingBudget::What::kHeaders, kBegin));
  budget_.Charge(kSuperuser, seconds(10), kBegin);
  EXPECT_FALSE(budget_.MayRead(kSuperuser, ReadingBudget::What::kHeaders, kBegin));
}

TEST_F(ReadingBudgetTest, LetsThoseGoOnWhoHaveUsedLittleWhenUsersHaveSpentTheirs) {
  budget_.Charge(kAlice, seconds(9), kBegin);
  budget_.Charge(kBob, milliseconds(100), kBegin);
  budget_.Charge({.user = 1002}, seconds(6), kBegin);
  EXPECT_FALSE(MayRead(kAlice, kBegin));
  EXPECT_TRUE(MayRead(kBob, kBegin));
  EXPECT_TRUE(MayRead({.user = 1003}, kBegin));
  EXPECT_TRUE(MayRead(kAlice, At(seconds(1)))) << "all have earned that much";
}

// As anybody may have who has subordinate ids.
TEST_F(ReadingBudgetTest, BoundsWhatAnyNumberOfUsersSpends) {
  std::chrono::nanoseconds spent{};
  for (uint32_t user = 1; user <= 10'000; ++user) {
    if (!MayRead({.user = user}, kBegin)) continue;
    budget_.Charge({.user = user}, milliseconds(100), kBegin);
    spent += milliseconds(100);
  }
  EXPECT_EQ(spent, seconds(30));
  EXPECT_TRUE(MayRead(kSuperuser, kBegin)) << "who is none of them";
}

TEST_F(ReadingBudgetTest, ForgetsWhoHasEarnedItBack) {
  for (uint32_t user = 1; user <= 5 * ReadingBudget::kSweptAt; ++user) {
    budget_.Charge({.user = user}, milliseconds(1), At(milliseconds(user)));
    EXPECT_LE(budget_.size(), ReadingBudget::kSweptAt);
  }
}

TEST(Payer, IsTheOwnerOnADevice) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const UniqueFd one(::memfd_create("one", MFD_CLOEXEC));
  const UniqueFd other(::memfd_create("other", MFD_CLOEXEC));
  EXPECT_EQ(PayerOf(one.get()), PayerOf(other.get()));
  EXPECT_EQ(AccountOf(one.get()), AccountOf(other.get()));
  EXPECT_NE(PayerOf(one.get()).device, 0);
  EXPECT_EQ(PayerOf(one.get()).user, Payer::kNameless) << "as a copy is";
  EXPECT_EQ(PayerOf(Open("/bin/sh", O_RDONLY)->get()).user, 0);
  ASSERT_EQ(::fchown(one.get(), 1000, 1000), 0);
  EXPECT_EQ(PayerOf(one.get()).user, kAlice.user);
  EXPECT_EQ(PayerOf(one.get()).device, PayerOf(other.get()).device);
  EXPECT_NE(AccountOf(one.get()), AccountOf(other.get()));
}

}  // namespace
}  // namespace pyrometer
