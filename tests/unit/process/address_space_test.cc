// SPDX-License-Identifier: Apache-2.0
#include "process/address_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr ObjectId kFoo{10};
constexpr ObjectId kBar{11};

MonotonicTime Second(uint64_t n) {
  return MonotonicTime(n * 1'000'000'000);
}

CodeMapping Text(ObjectId object, uint64_t start, uint64_t end, uint64_t bias = 0) {
  return {{Address(start), Address(end), object, bias}};
}

// Mapped writable too, or as a stack.
CodeMapping Uncounted(CodeMapping mapping) {
  mapping.counted = false;
  return mapping;
}

std::vector<ObjectMapping> Current(const AddressSpace& space) {
  return space.Current().mappings;
}

auto Are(const std::vector<CodeMapping>& expected) {
  std::vector<ObjectMapping> mappings;
  for (const CodeMapping& code : expected) mappings.push_back(code.mapping);
  return ElementsAreArray(mappings);
}

// 0: nothing there.
ObjectId ObjectAt(const AddressSpace& space, uint64_t address, MonotonicTime when) {
  const std::optional<ObjectMapping> mapping = space.At(Address(address), when);
  return mapping ? mapping->object : ObjectId(0);
}

TEST(AddressSpace, AnswersForTheMomentAsked) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000), Second(1));
  space.Map(Text(kBar, 0x2000, 0x4000), Second(5));
  EXPECT_EQ(ObjectAt(space, 0x2800, Second(4)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x2800, Second(5)), kBar);
}

TEST(AddressSpace, TellsWhetherItsContentWasTheSameInAPeriod) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000), Second(1));
  space.Map(Text(kBar, 0x2000, 0x3000), Second(5));
  space.Replace({Text(kFoo, 0x1000, 0x2000)}, Second(8));
  space.Map(Text(kFoo, 0x2000, 0x3000), Second(9));
  const struct {
    uint64_t first;
    uint64_t last;
    std::optional<ObjectId> content;  // 0: nothing there; none: it changed
  } cases[] = {{1, 4, kFoo},         {1, 5, std::nullopt}, {5, 7, kBar},
               {7, 8, std::nullopt}, {8, 8, ObjectId(0)},  {0, 0, ObjectId(0)},
               {0, 1, std::nullopt}, {9, 20, kFoo},        {4, 9, std::nullopt}};
  for (const auto& [first, last, content] : cases) {
    const AddressContent found = space.ContentIn({Second(first), Second(last)}, Address(0x2800));
    EXPECT_EQ(found.is_sure, content.has_value()) << first << " to " << last;
    const ObjectId object = found.mapping ? found.mapping->object : ObjectId(0);
    EXPECT_EQ(object, content.value_or(ObjectId(0))) << first << " to " << last;
  }
}

TEST(AddressSpace, KnowsNothingBeforeTheFirstMapping) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000), Second(1));
  EXPECT_EQ(ObjectAt(space, 0x1800, Second(0)), ObjectId(0));
}

TEST(AddressSpace, EndsWhereTheMappingEnds) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000), Second(1));
  EXPECT_EQ(ObjectAt(space, 0xfff, Second(1)), ObjectId(0));
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(1)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x2fff, Second(1)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x3000, Second(1)), ObjectId(0));
}

TEST(AddressSpace, SplitsWhatALaterMappingCutsInTwo) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x9000, 0x77), Second(1));
  space.Map(Text(kBar, 0x3000, 0x5000), Second(2));
  EXPECT_THAT(Current(space), Are({Text(kFoo, 0x1000, 0x3000, 0x77), Text(kBar, 0x3000, 0x5000),
                                   Text(kFoo, 0x5000, 0x9000, 0x77)}));
  EXPECT_EQ(ObjectAt(space, 0x4000, Second(1)), kFoo);
}

TEST(AddressSpace, ReplacesSeveralMappingsAtOnce) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x2000), Second(1));
  space.Map(Text(kFoo, 0x3000, 0x4000, 5), Second(1));
  space.Map(Text(kBar, 0x1800, 0x3800), Second(2));
  EXPECT_THAT(Current(space), Are({Text(kFoo, 0x1000, 0x1800), Text(kBar, 0x1800, 0x3800),
                                   Text(kFoo, 0x3800, 0x4000, 5)}));
}

TEST(AddressSpace, TakesARepeatedMappingForNoChange) {
  AddressSpace space;
  EXPECT_TRUE(space.Map(Text(kFoo, 0x1000, 0x3000), Second(1)));
  EXPECT_FALSE(space.Map(Text(kFoo, 0x1000, 0x3000), Second(2)));
  EXPECT_FALSE(space.Map(Text(kFoo, 0x2000, 0x3000), Second(3)));
  EXPECT_EQ(ObjectAt(space, 0x2000, Second(1)), kFoo);
}

TEST(AddressSpace, KeepsTheAgeOfWhatAGrowingMappingCovers) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x2000, 0x3000), Second(1));
  EXPECT_TRUE(space.Map(Text(kFoo, 0x1000, 0x4000), Second(5)));
  EXPECT_THAT(Current(space), Are({Text(kFoo, 0x1000, 0x4000)}));
  EXPECT_EQ(ObjectAt(space, 0x2000, Second(1)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(1)), ObjectId(0));
  EXPECT_EQ(ObjectAt(space, 0x3800, Second(5)), kFoo);
}

TEST(AddressSpace, TellsTheSameFileAtAnotherOffsetApart) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000, 0x1000), Second(1));
  space.Map(Text(kFoo, 0x1000, 0x3000, 0x500), Second(2));
  EXPECT_EQ(space.At(Address(0x1000), Second(1))->bias, 0x1000U);
  EXPECT_EQ(space.At(Address(0x1000), Second(2))->bias, 0x500U);
}

TEST(AddressSpace, IgnoresEmptyAndReversedMappings) {
  AddressSpace space;
  EXPECT_FALSE(space.Map(Text(kFoo, 0x1000, 0x1000), Second(1)));
  EXPECT_FALSE(space.Map(Text(kFoo, 0x2000, 0x1000), Second(1)));
  EXPECT_THAT(Current(space), IsEmpty());
}

TEST(AddressSpace, ReachesTheEndOfTheAddressRange) {
  AddressSpace space;
  space.Map(Text(kFoo, 0xffff'ffff'ffff'f000, UINT64_MAX), Second(1));
  EXPECT_EQ(ObjectAt(space, UINT64_MAX - 1, Second(1)), kFoo);
}

TEST(AddressSpace, CountsAnEarlierChangeAsOfTheLastOne) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x2000), Second(5));
  space.Map(Text(kBar, 0x1000, 0x2000), Second(3));
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(4)), ObjectId(0));
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(5)), kBar);
}

TEST(AddressSpace, GivesAForkedChildThePresent) {
  AddressSpace parent;
  parent.Map(Text(kFoo, 0x1000, 0x2000), Second(1));
  AddressSpace child = parent.Fork(Second(9));
  parent.Map(Text(kBar, 0x1000, 0x2000), Second(2));
  child.Map(Text(kBar, 0x5000, 0x6000), Second(3));
  EXPECT_THAT(Current(child), Are({Text(kFoo, 0x1000, 0x2000), Text(kBar, 0x5000, 0x6000)}));
  EXPECT_THAT(Current(parent), Are({Text(kBar, 0x1000, 0x2000)}));
}

TEST(AddressSpace, ForgetsWhatWasReplacedBeforeTheHorizon) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x2000), Second(1));
  space.Map(Text(kBar, 0x1000, 0x2000), Second(5));
  space.Forget(Second(4));
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(4)), kFoo);
  space.Forget(Second(5));
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(4)), ObjectId(0));
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(5)), kBar);
}

TEST(AddressSpace, DropsWhatAReplacementLeavesOut) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x2000), Second(1));
  space.Map(Text(kBar, 0x3000, 0x4000), Second(1));
  space.Replace({Text(kBar, 0x3000, 0x4000)}, Second(9));
  EXPECT_THAT(Current(space), Are({Text(kBar, 0x3000, 0x4000)}));
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(8)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(9)), ObjectId(0));
  EXPECT_EQ(ObjectAt(space, 0x3000, Second(2)), kBar) << "it was there all the time";
}

TEST(AddressSpace, KeepsUntilAReplacementWhatItCutsOff) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x9000, 7), Second(1));
  EXPECT_TRUE(
      space.Replace({Text(kFoo, 0x1000, 0x3000, 7), Text(kBar, 0x5000, 0x6000)}, Second(9)));
  EXPECT_THAT(Current(space), Are({Text(kFoo, 0x1000, 0x3000, 7), Text(kBar, 0x5000, 0x6000)}));
  EXPECT_EQ(ObjectAt(space, 0x2000, Second(5)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x5000, Second(5)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x8000, Second(5)), kFoo);
  EXPECT_EQ(ObjectAt(space, 0x8000, Second(9)), ObjectId(0));
}

TEST(AddressSpace, TakesAReplacementByTheSameForNoChange) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x2000), Second(1));
  space.Map(Text(kFoo, 0x2000, 0x3000), Second(2));
  EXPECT_FALSE(space.Replace({Text(kFoo, 0x1000, 0x3000)}, Second(9)));
  EXPECT_TRUE(space.shifting().empty());
}

TEST(AddressSpace, ForgetsWholeMappingsOfARange) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x9000), Second(1));
  space.Map(Text(kBar, 0xa000, 0xb000), Second(1));
  EXPECT_FALSE(space.Forget(Address(0x9000), Address(0xa000), Second(2)));
  EXPECT_TRUE(space.Forget(Address(0x4000), Address(0x5000), Second(3)));
  EXPECT_EQ(space.size(), 1U) << "never more than before";
  EXPECT_EQ(ObjectAt(space, 0x1000, Second(2)), kFoo);
  EXPECT_FALSE(space.At(Address(0x1000), Second(3)));
  EXPECT_EQ(ObjectAt(space, 0xa000, Second(3)), kBar);
}

TEST(AddressSpace, ShowsAllThatWasThereAtAMoment) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000), Second(1));
  space.Map(Text(kBar, 0x8000, 0x9000), Second(2));
  space.Map(Text(kBar, 0x2000, 0x4000, 5), Second(5));
  const auto at = [&](uint64_t second) { return space.At(Second(second)); };
  EXPECT_THAT(at(0).mappings, IsEmpty());
  EXPECT_EQ(at(0).counted_bytes, 0U);
  EXPECT_THAT(at(1).mappings, Are({Text(kFoo, 0x1000, 0x3000)})) << "cut in two later";
  EXPECT_THAT(at(4).mappings, Are({Text(kFoo, 0x1000, 0x3000), Text(kBar, 0x8000, 0x9000)}));
  EXPECT_EQ(at(4).counted_bytes, 0x3000U);
  EXPECT_THAT(at(5).mappings, Are({Text(kFoo, 0x1000, 0x2000), Text(kBar, 0x2000, 0x4000, 5),
                                   Text(kBar, 0x8000, 0x9000)}));
  EXPECT_EQ(at(5).counted_bytes, 0x4000U);
}

TEST(AddressSpace, CountsOnlyWhatTheKernelCounts) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000), Second(1));
  space.Map(Uncounted(Text(ObjectId(0), 0x8000, 0xa000)), Second(1));
  EXPECT_EQ(space.Current().counted_bytes, 0x2000U);
  EXPECT_TRUE(space.Map(Uncounted(Text(kFoo, 0x2000, 0x3000)), Second(5)));
  EXPECT_THAT(Current(space), Are({Text(kFoo, 0x1000, 0x3000), Text(ObjectId(0), 0x8000, 0xa000)}));
  EXPECT_EQ(space.Current().counted_bytes, 0x1000U);
  EXPECT_EQ(space.At(Second(4)).counted_bytes, 0x2000U);
  EXPECT_TRUE(space.Map(Text(ObjectId(0), 0x8000, 0x9000), Second(6)));
  EXPECT_EQ(space.Current().counted_bytes, 0x2000U);
  EXPECT_TRUE(space.shifting().empty()) << "the same code, with other rights";
}

TEST(AddressSpace, RemembersWhereItsContentChanged) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x9000), Second(1));
  space.Map(Text(kFoo, 0x1000, 0x9000), Second(2));
  EXPECT_TRUE(space.shifting().empty());
  space.Map(Text(kBar, 0x3000, 0x5000), Second(3));
  space.Map(Text(kFoo, 0x5000, 0x6000, 77), Second(3));
  EXPECT_FALSE(space.shifting().Contains(Address(0x2fff)));
  EXPECT_TRUE(space.shifting().Contains(Address(0x3000)));
  EXPECT_EQ(space.shifting().EndOfStretch(Address(0x3000), Address(0x9000)), Address(0x6000));
  space.Map(Text(kFoo, 0x1000, 0x9000), Second(4));
  EXPECT_TRUE(space.shifting().Contains(Address(0x3000))) << "from then on";
  space.ForgetShifting();
  EXPECT_TRUE(space.shifting().empty());
}

TEST(AddressSpace, TakesAFileThatIsGoneForAChange) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x5000), Second(1));
  space.Map(Text(ObjectId(0), 0x8000, 0x9000), Second(1));
  EXPECT_TRUE(space.Replace({Text(kFoo, 0x1000, 0x2000)}, Second(2)));
  EXPECT_FALSE(space.shifting().Contains(Address(0x1000)));
  EXPECT_TRUE(space.shifting().Contains(Address(0x2000)));
  EXPECT_TRUE(space.shifting().Contains(Address(0x4fff)));
  EXPECT_FALSE(space.shifting().Contains(Address(0x8000))) << "a JIT's pages, writable for now";
}

TEST(AddressSpace, GivesAForkedChildItsShiftingRanges) {
  AddressSpace parent;
  parent.Map(Text(kFoo, 0x1000, 0x2000), Second(1));
  parent.Map(Text(kBar, 0x1000, 0x2000), Second(2));
  EXPECT_TRUE(parent.Fork(Second(9)).shifting().Contains(Address(0x1000)));
}

TEST(AddressSpace, RemembersAtMostSoMuchPast) {
  AddressSpace space;
  for (uint64_t i = 0; i < 20'000; ++i) {
    space.Map(Text(kFoo, 0x1000, 0x2000, i), MonotonicTime(i));
  }
  EXPECT_FALSE(space.At(Address(0x1000), MonotonicTime(100)).has_value());
  EXPECT_EQ(space.At(Address(0x1000), MonotonicTime(19'000))->bias, 19'000U);
}

TEST(AddressSpace, GivesMappingsTheirMeaningThenAndNow) {
  AddressSpace space;
  space.Map(Text(kFoo, 0x1000, 0x3000), Second(1));
  space.Map(Text(kFoo, 0x8000, 0xa000), Second(1));
  space.Map(Text(kBar, 0x2000, 0x3000), Second(5));
  AddressSpace child = space.Fork(Second(6));
  constexpr ObjectId kFound{12};
  const auto meaning = [&](const ObjectMapping& m) -> std::optional<std::vector<ObjectMapping>> {
    if (m.object != kFoo) return std::nullopt;
    const Address middle(m.start.value() + 0x800);  // what lies behind is no part of it
    return std::vector<ObjectMapping>{{m.start, middle, kFound, 0x700}};
  };
  AddressSpace::Replaced replaced;
  EXPECT_TRUE(space.Reinterpret(meaning, replaced));
  EXPECT_TRUE(child.Reinterpret(meaning, replaced));
  EXPECT_EQ(ObjectAt(space, 0x2000, Second(4)), kFound) << "it was so before, too";
  EXPECT_EQ(ObjectAt(space, 0x2000, Second(5)), kBar);
  for (const AddressSpace* const each : {&space, &child}) {
    EXPECT_THAT(Current(*each),
                Are({Text(kFound, 0x1000, 0x1800, 0x700), Text(kBar, 0x2000, 0x3000),
                     Text(kFound, 0x8000, 0x8800, 0x700)}));
  }
  EXPECT_FALSE(space.Reinterpret(meaning, replaced)) << "nothing is left to find";
}

}  // namespace
}  // namespace pyrometer
