// SPDX-License-Identifier: Apache-2.0
#include "sampler/map_sizes.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using std::chrono::seconds;

uint32_t EntriesFor(Hertz frequency, uint32_t cpus, seconds window) {
  return MapSizes().WithWindows(frequency, cpus, window).counts;
}

TEST(MapSizes, HoldsAWindowOfTicksThatAllDiffer) {
  EXPECT_GE(EntriesFor(Hertz{99}, 4, seconds(5)), 99U * 4 * 5);
}

TEST(MapSizes, IsNeverTiny) {
  EXPECT_EQ(EntriesFor(Hertz{1}, 1, seconds(1)), MapSizes::kMinEntries);
}

TEST(MapSizes, IsBoundedByOneSecondOfTicksOnLargeMachines) {
  EXPECT_EQ(EntriesFor(Hertz{99}, 256, seconds(60)), 99U * 256);
  EXPECT_EQ(EntriesFor(Hertz{999}, 2, seconds(60)), MapSizes::kMaxEntries);
}

TEST(MapSizes, KeepsWindowsToTheirMemory) {
  constexpr uint64_t kLittle = 30'000'000;
  const MapSizes all = MapSizes().WithWindows(Hertz{99}, 256, seconds(60));
  const MapSizes sizes = all.WithWindowBytes(kLittle, 256);
  EXPECT_LE(sizes.BytesOfWindows(256), kLittle);
  EXPECT_GT(sizes.BytesOfWindows(256), kLittle * 9 / 10);
  EXPECT_EQ(all.WithWindowBytes(0, 256).counts, MapSizes::kMinEntries);
  EXPECT_EQ(all.WithWindowBytes(1'000'000'000, 256).counts, all.counts);
}

TEST(MapSizes, HasJournalsForAWindowWithinTheirMemory) {
  constexpr uint64_t kPlenty = 1'000'000'000;
  const auto sizes = [](uint32_t hertz, uint32_t cpus, uint64_t most) {
    return MapSizes().WithJournals(Hertz{hertz}, cpus, seconds(10), most);
  };
  const MapSizes usual = sizes(99, 2, kPlenty);
  EXPECT_GT(usual.journal_bytes, 98U * 10 * MapSizes::kUsualJournalBytes);
  EXPECT_LE(usual.journal_bytes, 99U * 10 * MapSizes::kUsualJournalBytes);
  EXPECT_EQ(usual.BytesOfJournals(64), uint64_t{usual.journal_bytes} * 2 * 2);
  EXPECT_EQ(sizes(9999, 2, kPlenty).journal_bytes, MapSizes::kMaxJournalBytes);
  const MapSizes little = sizes(99, 256, 20'000'000);
  EXPECT_LE(little.BytesOfJournals(256), 20'000'000U);
  EXPECT_GT(little.BytesOfJournals(256), 18'000'000U);
  EXPECT_EQ(sizes(99, 256, 0).journal_bytes, MapSizes::kMinJournalBytes);
  EXPECT_GE(MapSizes::kMinJournalBytes, PYRO_JOURNAL_MIN_BYTES);
}

TEST(MapSizes, HasARingForAQuarterOfASecondWithinItsMemory) {
  constexpr uint64_t kPlenty = 1'000'000'000;
  const auto bytes = [](uint32_t hertz, uint64_t most) {
    return MapSizes().WithColdRing(Hertz{hertz}, 2, most).cold_bytes;
  };
  EXPECT_EQ(bytes(99, kPlenty), MapSizes::kMinColdBytes);
  EXPECT_GE(bytes(999, kPlenty), 999U * 2 / 4 * MapSizes::kUsualColdBytes);
  EXPECT_EQ(bytes(9999, kPlenty), MapSizes::kMaxColdBytes);
  EXPECT_EQ(bytes(9999, 10'000'000), 8U << 20) << "a power of two";
  EXPECT_EQ(bytes(9999, 0), MapSizes::kMinColdBytes);
}

TEST(MapSizes, SaysHowLongAMapHasRoomAtLeast) {
  EXPECT_EQ(MapSizes::TimeUntil(256, 56, 200), seconds(1));
  EXPECT_EQ(MapSizes::TimeUntil(256, 256, 200), seconds(0));
  EXPECT_EQ(MapSizes::TimeUntil(256, 300, 200), seconds(0)) << "those that found no room count";
  EXPECT_GT(MapSizes::TimeUntil(256, 0, 0), seconds(1)) << "nothing is sampled yet";
}

}  // namespace
}  // namespace pyrometer
