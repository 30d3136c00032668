// SPDX-License-Identifier: Apache-2.0
#include "profiler/kernel_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>

namespace pyrometer {
namespace {

using std::chrono::seconds;
using Machine = KernelMemory::Machine;

constexpr uint64_t kGigabyte = uint64_t{1} << 30;

Machine WithCpus(uint32_t cpus) {
  return {.cpus = cpus,
          .possible_cpus = cpus,
          .highest_cpu = cpus - 1,
          .bytes = std::max(4, static_cast<int>(cpus)) * kGigabyte};
}

void ForEachPlan(const Machine& machine, const std::function<void(const KernelMemory&)>& look) {
  for (const uint32_t frequency : {1U, 19U, 99U, 499U, 999U, 4999U, 10'000U}) {
    for (const seconds window : {seconds(1), seconds(5), seconds(10), seconds(60)}) {
      SCOPED_TRACE(testing::Message() << machine.cpus << " CPUs of " << machine.possible_cpus
                                      << " at " << frequency << " Hz");
      look(KernelMemory::For(machine, Hertz{frequency}, window));
    }
  }
}

TEST(KernelMemory, HasALimitByTheNumberOfCpus) {
  EXPECT_EQ(KernelMemory::Limit(WithCpus(1)), 40'000'000U);
  EXPECT_EQ(KernelMemory::Limit(WithCpus(2)), 40'000'000U);
  EXPECT_EQ(KernelMemory::Limit(WithCpus(256)), 150'000'000U);
  for (uint32_t cpus = 2; cpus < 512; ++cpus) {
    EXPECT_LT(KernelMemory::Limit(WithCpus(cpus)), KernelMemory::Limit(WithCpus(cpus + 1)));
  }
}

TEST(KernelMemory, KeepsToItsLimitWithAnyNumberOfCpusAtAnyFrequency) {
  for (uint32_t cpus = 1; cpus <= 512; ++cpus) {
    const Machine machine = WithCpus(cpus);
    ForEachPlan(machine, [&](const KernelMemory& memory) {
      ASSERT_LE(memory.Bytes(machine), KernelMemory::Limit(machine));
      ASSERT_TRUE(std::has_single_bit(memory.event_ring_bytes));
      ASSERT_TRUE(std::has_single_bit(memory.maps.cold_bytes));
      ASSERT_GE(memory.maps.cold_bytes, MapSizes::kMinColdBytes);
      ASSERT_GE(memory.maps.counts, MapSizes::kMinEntries);
    });
  }
}

TEST(KernelMemory, KeepsToItsLimitWhereManyMoreCpusMayCome) {
  for (uint32_t cpus = 1; cpus <= 256; ++cpus) {
    Machine machine = WithCpus(cpus);
    machine.possible_cpus = 256;
    ForEachPlan(machine, [&](const KernelMemory& memory) {
      ASSERT_LE(memory.Bytes(machine), KernelMemory::Limit(machine));
      ASSERT_GE(memory.maps.shipping_cpus, std::min(2 * cpus, 256U));
    });
  }
}

TEST(KernelMemory, KeepsToItsLimitWithPagesOf64KiB) {
  for (uint32_t cpus = 1; cpus <= 256; ++cpus) {
    Machine machine = WithCpus(cpus);
    machine.page = 65536;
    ForEachPlan(machine, [&](const KernelMemory& memory) {
      ASSERT_LE(memory.Bytes(machine), KernelMemory::Limit(machine));
    });
  }
}

TEST(KernelMemory, TakesLittleOfALittleMachine) {
  for (const uint64_t bytes : {kGigabyte / 2, kGigabyte, 2 * kGigabyte}) {
    Machine machine = WithCpus(2);
    machine.bytes = bytes;
    ForEachPlan(machine, [&](const KernelMemory& memory) {
      EXPECT_LE(memory.Bytes(machine),
                std::clamp(bytes / 32, uint64_t{20'080'000}, uint64_t{40'000'000}));
      EXPECT_EQ(memory.table_budget, bytes / 64);
    });
  }
}

TEST(KernelMemory, KeepsToTheLeastOfALittleMachineWhereManyMoreCpusMayCome) {
  for (const uint32_t cpus : {1U, 2U, 8U, 16U}) {
    for (const uint32_t possible : {16U, 64U, 128U, 240U, 512U}) {
      for (const uint64_t bytes : {kGigabyte / 2, kGigabyte, 4 * kGigabyte, 8 * kGigabyte}) {
        Machine machine = WithCpus(cpus);
        machine.possible_cpus = possible;
        machine.bytes = bytes;
        ForEachPlan(machine, [&](const KernelMemory& memory) {
          ASSERT_LE(memory.Bytes(machine), KernelMemory::Limit(machine));
          ASSERT_LE(memory.Bytes(machine),
                    std::max(std::clamp<uint64_t>(bytes / 32, 20'000'000, 46'100'000),
                             uint64_t{20'000'000} + uint64_t{40'000} * possible));
          ASSERT_GE(memory.maps.shipping_cpus, cpus) << "all that are there may ship samples";
        });
      }
    }
  }
}

// What a window of 10 seconds needs if no stack is like another; at 999 Hz as much as ever.
TEST(KernelMemory, SavesNothingOnTheWindowsOfTwoCpus) {
  const KernelMemory usual = KernelMemory::For(WithCpus(2), Hertz{99}, seconds(10));
  EXPECT_GE(MapSizes::NearlyFull(usual.maps.counts), 99U * 2 * 9);
  EXPECT_GE(usual.maps.counts, 99U * 2 * 10);
  EXPECT_GE(usual.maps.journal_bytes, 99U * 9 * MapSizes::kUsualJournalBytes);
  const KernelMemory fast = KernelMemory::For(WithCpus(2), Hertz{999}, seconds(10));
  EXPECT_EQ(fast.maps.counts, MapSizes::kMaxEntries);
  for (const KernelMemory& memory : {usual, fast}) {
    EXPECT_EQ(memory.event_ring_bytes, size_t{512} << 10);
    EXPECT_EQ(memory.table_budget, size_t{64} << 20);
    EXPECT_EQ(memory.maps.shipping_cpus, 2U);
    EXPECT_EQ(memory.maps.journal_cpus, 2U);
  }
}

TEST(KernelMemory, HasRoomForMoreMappingsOnLargerMachines) {
  EXPECT_EQ(KernelMemory::For(WithCpus(2), Hertz{99}, seconds(10)).maps.mapping_parts, 1U);
  const KernelMemory large = KernelMemory::For(WithCpus(256), Hertz{99}, seconds(10));
  // 2,000 containers with 5 processes each, of 50 files.
  EXPECT_GE(uint64_t{large.maps.mapping_parts} * PYRO_POOL_PART, 2000U * 5 * 51);
  EXPECT_EQ(large.maps.processes, 65536U);
}

}  // namespace
}  // namespace pyrometer
