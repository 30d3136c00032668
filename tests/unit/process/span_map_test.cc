// SPDX-License-Identifier: Apache-2.0
#include "process/span_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace pyrometer {
namespace {

MappedSpan SpanAt(uint64_t start, uint32_t object = 7) {
  return {{{Address(start), Address(start + 0x1000), ObjectId(object)}}, MonotonicTime(1)};
}

// So many pages with a page between each two.
SpanMap Many(uint64_t count) {
  SpanMap map;
  for (uint64_t i = 0; i < count; ++i) map.Add(SpanAt(i * 0x2000));
  return map;
}

std::vector<uint64_t> StartsOf(const SpanMap& map) {
  std::vector<uint64_t> starts;
  map.ForEach([&](const MappedSpan& span) { starts.push_back(span.start().value()); });
  return starts;
}

TEST(SpanMap, FindsWhatContainsAnAddress) {
  const SpanMap map = Many(1000);
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_NE(map.At(Address(i * 0x2000)), nullptr);
    EXPECT_EQ(map.At(Address(i * 0x2000 + 0xfff))->start(), Address(i * 0x2000));
    EXPECT_EQ(map.At(Address(i * 0x2000 + 0x1000)), nullptr);
  }
  EXPECT_EQ(SpanMap().At(Address(0)), nullptr);
}

TEST(SpanMap, FindsWhatReachesIntoARange) {
  const SpanMap map = Many(1000);
  const auto starts_in = [&](uint64_t start, uint64_t end) {
    std::vector<uint64_t> starts;
    for (const MappedSpan& span : map.Overlapping(Address(start), Address(end))) {
      starts.push_back(span.start().value());
    }
    return starts;
  };
  EXPECT_EQ(starts_in(0x2fff, 0x6001), (std::vector<uint64_t>{0x2000, 0x4000, 0x6000}));
  EXPECT_EQ(starts_in(0x3000, 0x4000), std::vector<uint64_t>());
  EXPECT_EQ(starts_in(0, UINT64_MAX).size(), 1000U);
  EXPECT_TRUE(SpanMap().Overlapping(Address(0), Address(UINT64_MAX)).empty());
}

TEST(SpanMap, IsASortedMapWhateverComes) {
  std::mt19937_64 random(1);
  std::map<uint64_t, uint32_t> expected;
  SpanMap map;
  std::vector<std::pair<SpanMap, std::map<uint64_t, uint32_t>>> copies;
  for (uint32_t step = 0; step < 20'000; ++step) {
    const uint64_t start = random() % 600 * 0x1000;
    const bool grows = step / 2'000 % 2 == 0;
    if (random() % 4 != 0 && grows) {
      if (expected.emplace(start, step).second) map.Add(SpanAt(start, step));
    } else {
      expected.erase(start);
      map.Erase(Address(start));
    }
    if (step % 1'000 == 500) copies.emplace_back(map, expected);
    ASSERT_EQ(map.size(), expected.size());
  }
  copies.emplace_back(map, expected);
  for (const auto& [copy, then] : copies) {
    std::map<uint64_t, uint32_t> found;
    copy.ForEach([&](const MappedSpan& span) {
      EXPECT_TRUE(found.empty() || found.rbegin()->first < span.start().value());
      found[span.start().value()] = span.code.mapping.object.value();
    });
    EXPECT_EQ(found, then);
  }
}

TEST(SpanMap, SharesWithItsCopiesWhatTheyDoNotChange) {
  const SpanMap parent = Many(8'192);
  std::vector<SpanMap> children(60, parent);
  size_t bytes = 0;
  for (SpanMap& child : children) {
    child.Erase(Address(0x2000));
    child.Add(SpanAt(0x2000, 8));
    child.Add(SpanAt(0x3000, 8));
    bytes += child.OwnBytes();
    EXPECT_EQ(child.size(), 8'193U);
  }
  EXPECT_LT(bytes, size_t{1} << 20) << "and not 60 times 450 KiB";
  EXPECT_EQ(parent.size(), 8'192U);
  EXPECT_EQ(parent.At(Address(0x2000))->code.mapping.object, ObjectId(7));
}

TEST(SpanMap, TakesNoMoreMemoryThanItsSizeNeeds) {
  SpanMap map = Many(8'192);
  EXPECT_LT(map.OwnBytes(), 8'192 * sizeof(MappedSpan) * 3 / 2);
  for (uint64_t i = 0; i < 8'192; ++i) {
    if (i % 64 != 0) map.Erase(Address(i * 0x2000));
  }
  EXPECT_EQ(StartsOf(map).size(), 128U);
  EXPECT_LT(map.OwnBytes(), 128 * sizeof(MappedSpan) * 8);
}

}  // namespace
}  // namespace pyrometer
