// SPDX-License-Identifier: Apache-2.0
#include "process/user_share.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "process/address_space.h"

namespace pyrometer {
namespace {

constexpr UserId kGreedy{1000};
constexpr UserId kOther{1001};

// Takes 1 byte after another as long as it may.
size_t TakeAll(const UserShares& shares, UserShare& share) {
  while (true) {
    share.AddBytes(1);
    if (!shares.IsOverBytes(share)) continue;
    share.RemoveBytes(1);
    return share.own().bytes;
  }
}

CodeMapping MappingAt(uint64_t page, ObjectId object = ObjectId(10)) {
  return {{Address(page << 12), Address((page + 1) << 12), object, 0}};
}

TEST(UserShares, GiveOneAloneAHalf) {
  UserShares shares({.bytes = 1000});
  EXPECT_EQ(TakeAll(shares, *shares.Of(kGreedy)), 500U);
}

TEST(UserShares, HaveRoomForWhoComesLater) {
  UserShares shares({.bytes = 1000});
  TakeAll(shares, *shares.Of(kGreedy));
  EXPECT_EQ(TakeAll(shares, *shares.Of(kOther)), 250U);
  EXPECT_TRUE(shares.IsOver(*shares.Of(kGreedy))) << "and has to give some of it back";
  EXPECT_FALSE(shares.IsOver(*shares.Of(kOther)));
}

TEST(UserShares, GiveTwoAThirdEachOnceTheFirstHasGivenBack) {
  UserShares shares({.bytes = 1000});
  const auto greedy = shares.Of(kGreedy);
  const auto other = shares.Of(kOther);
  TakeAll(shares, *greedy);
  for (int round = 0; round < 20; ++round) {
    TakeAll(shares, *other);
    while (shares.IsOverBytes(*greedy)) greedy->RemoveBytes(1);
  }
  EXPECT_NEAR(static_cast<double>(greedy->own().bytes), 333, 2);
  EXPECT_NEAR(static_cast<double>(other->own().bytes), 333, 2);
  EXPECT_LE(shares.all().bytes, 1000U);
}

TEST(UserShares, AreLargeIfTheyAreNearTheirEnd) {
  UserShares shares({.bytes = 100'000});
  std::vector<std::shared_ptr<UserShare>> many;
  for (uint32_t user = 1000; user < 1040; ++user) many.push_back(shares.Of(UserId(user)));
  for (int round = 0; round < 200; ++round) {
    for (const auto& share : many) {
      TakeAll(shares, *share);
      while (shares.IsOverBytes(*share)) share->RemoveBytes(1);
    }
  }
  EXPECT_LT(many[0]->own().bytes, 3'000U) << "each of 40 has a 41st";
  EXPECT_TRUE(shares.IsLarge(*many[0]));
  EXPECT_FALSE(shares.IsOver(*many[0])) << "nor is it told again as soon as it was";
  EXPECT_FALSE(shares.IsLarge(*shares.Of(kUnknownUser)));
}

TEST(UserShares, CountEndedProcessesLikewise) {
  UserShares shares({.ended = 4});
  const auto greedy = shares.Of(kGreedy);
  greedy->Bury({MonotonicTime(1), Pid(1)});
  greedy->Bury({MonotonicTime(2), Pid(2)});
  EXPECT_FALSE(shares.IsOver(*greedy));
  greedy->Bury({MonotonicTime(3), Pid(3)});
  EXPECT_TRUE(shares.IsOver(*greedy));
  EXPECT_FALSE(shares.IsOverBytes(*greedy));
  EXPECT_EQ(greedy->Unearth().pid, Pid(1));
  EXPECT_FALSE(shares.IsOver(*greedy));
}

TEST(UserShares, AreKeptAsLongAsTheyAreHeld) {
  UserShares shares({});
  const auto held = shares.Of(kGreedy);
  shares.Of(kOther);
  shares.ForEach([](UserShare&) {});
  EXPECT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares.Of(kGreedy), held);
}

class ChargedSpace : public testing::Test {
 protected:
  size_t Bytes(UserId user) { return shares_.Of(user)->own().bytes; }

  UserShares shares_{{}};
};

TEST_F(ChargedSpace, CountsUntilItGoes) {
  {
    AddressSpace space(shares_.Of(kGreedy));
    for (uint64_t i = 0; i < 1000; ++i) space.Map(MappingAt(2 * i), MonotonicTime(1));
    EXPECT_GE(Bytes(kGreedy), 1000 * sizeof(MappedSpan));
    EXPECT_LE(Bytes(kGreedy), 3000 * sizeof(MappedSpan));
    EXPECT_EQ(shares_.all().bytes, Bytes(kGreedy));
  }
  EXPECT_EQ(Bytes(kGreedy), 0U);
  EXPECT_EQ(shares_.all().bytes, 0U);
}

TEST_F(ChargedSpace, CountsWhatHasEndedUntilItIsForgotten) {
  AddressSpace space(shares_.Of(kGreedy));
  for (uint32_t i = 0; i < 1000; ++i) space.Map(MappingAt(1, ObjectId(i)), MonotonicTime(i));
  const size_t before = Bytes(kGreedy);
  EXPECT_GE(before, 1000 * sizeof(MappedSpan));
  space.Forget(MonotonicTime(2000));
  EXPECT_LE(Bytes(kGreedy), before / 10) << "none of it is held for later either";
}

TEST_F(ChargedSpace, CountsOnceWhatForkedChildrenShare) {
  AddressSpace parent(shares_.Of(kGreedy));
  for (uint64_t i = 0; i < 1000; ++i) parent.Map(MappingAt(2 * i), MonotonicTime(1));
  const size_t alone = Bytes(kGreedy);
  const AddressSpace child = parent.Fork(MonotonicTime(2), shares_.Of(kGreedy));
  EXPECT_EQ(Bytes(kGreedy), alone);
  EXPECT_EQ(child.size(), 1000U);
}

TEST_F(ChargedSpace, ChargesAChildsChangesToItsUser) {
  AddressSpace parent(shares_.Of(kOther));
  for (uint64_t i = 0; i < 1000; ++i) parent.Map(MappingAt(2 * i), MonotonicTime(1));
  const size_t parents = Bytes(kOther);
  AddressSpace child = parent.Fork(MonotonicTime(2), shares_.Of(kGreedy));
  EXPECT_EQ(Bytes(kGreedy), 0U);
  for (uint64_t i = 0; i < 1000; ++i) child.Map(MappingAt(2 * i + 1), MonotonicTime(3));
  EXPECT_GE(Bytes(kGreedy), 1000 * sizeof(MappedSpan));
  EXPECT_EQ(Bytes(kOther), parents);
}

TEST_F(ChargedSpace, IsChargedToAnotherFromThenOn) {
  AddressSpace space(shares_.Of(kOther));
  for (uint64_t i = 0; i < 100; ++i) space.Map(MappingAt(2 * i), MonotonicTime(1));
  space.ChargeTo(shares_.Of(kGreedy));
  EXPECT_EQ(Bytes(kOther), 0U);
  EXPECT_EQ(space.size(), 100U);
  for (uint64_t i = 100; i < 1000; ++i) space.Map(MappingAt(2 * i), MonotonicTime(1));
  EXPECT_GE(Bytes(kGreedy), 1000 * sizeof(MappedSpan));
  EXPECT_EQ(Bytes(kOther), 0U);
}

TEST_F(ChargedSpace, StaysChargedToItsUserWhenAParentHasGone) {
  AddressSpace child;
  {
    AddressSpace parent(shares_.Of(kOther));
    for (uint64_t i = 0; i < 1000; ++i) parent.Map(MappingAt(2 * i), MonotonicTime(1));
    child = parent.Fork(MonotonicTime(2), shares_.Of(kGreedy));
  }
  const size_t parents = Bytes(kOther);
  for (uint64_t i = 0; i < 1000; ++i) child.Map(MappingAt(2 * i + 1), MonotonicTime(3));
  EXPECT_LT(Bytes(kOther), parents / 10);
  EXPECT_GE(Bytes(kGreedy), 2000 * sizeof(MappedSpan));
}

TEST_F(ChargedSpace, StaysChargedToItsUserWhenItsMeaningIsLearnt) {
  AddressSpace parent(shares_.Of(kOther));
  parent.Map(MappingAt(0), MonotonicTime(1));
  AddressSpace child = parent.Fork(MonotonicTime(2), shares_.Of(kGreedy));
  AddressSpace::Replaced replaced;
  const auto meaning = [](const ObjectMapping& mapping) {
    ObjectMapping known = mapping;
    known.object = ObjectId(11);
    return std::optional(std::vector<ObjectMapping>{known});
  };
  EXPECT_TRUE(parent.Reinterpret(meaning, replaced));
  EXPECT_TRUE(child.Reinterpret(meaning, replaced));
  const size_t parents = Bytes(kOther);
  for (uint64_t i = 1; i < 1000; ++i) child.Map(MappingAt(2 * i), MonotonicTime(3));
  EXPECT_EQ(Bytes(kOther), parents);
  EXPECT_GE(Bytes(kGreedy), 999 * sizeof(MappedSpan));
}

}  // namespace
}  // namespace pyrometer
