// SPDX-License-Identifier: Apache-2.0
#include "sampler/map_sizes.h"

#include <algorithm>
#include <bit>

#include "pyrometer/abi/unwind.h"

namespace pyrometer {
namespace {

// A preallocated hash map (kernel/bpf/hashtab.c) has elements with a head of 48 bytes, of which
// each CPU has one more to exchange, and buckets of 16, whose number is a power of two.
uint64_t HashBytes(uint64_t entries, uint64_t key, uint64_t value, uint64_t cpus) {
  constexpr uint64_t kHead = 48;
  constexpr uint64_t kOfCpu = 64;
  return (entries + cpus) * (kHead + key + value) + std::bit_ceil(entries) * 16 + cpus * kOfCpu;
}

// Unwind tables but for their rows, and filters. The same on every machine: there is room for what
// 2,000 containers have mapped.
uint64_t FixedBytes(uint64_t cpus) {
  constexpr uint64_t kTables =
      PYRO_MAX_TABLES * sizeof(pyro_object_table) + PYRO_MAX_TABLE_PAGES * sizeof(pyro_table_page) +
      PYRO_MAX_RULES * sizeof(pyro_unwind_rule) + PYRO_MAX_CHUNKS * sizeof(uint64_t);
  constexpr uint64_t kSmallMaps = uint64_t{64} << 10;
  return kTables + kSmallMaps + HashBytes(16384, 8, 8, cpus) + HashBytes(1024, 16, 8, cpus) +
         HashBytes(1024, 8, 8, cpus) + HashBytes(PYRO_MAX_DENIED, 8, 8, cpus);
}

// Of each CPU there may be: a walk, of which known rules are 16 KiB, and counters and verdicts.
constexpr uint64_t kPerCpu = uint64_t{25} << 10;
constexpr uint64_t kColdBuffer = sizeof(pyro_cold_sample) + PYRO_COLD_STACK_BYTES + PYRO_COLD_PIECE;

uint64_t TicksIn(std::chrono::nanoseconds window, uint64_t ticks_per_second) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(window).count();
  return ticks_per_second * static_cast<uint64_t>(std::max<int64_t>(milliseconds, 0)) / 1000;
}

// Stacks of most programs have at most 32 frames; one in four beyond 128 is rare (Java, deep
// recursion).
void SetEntries(MapSizes& sizes, uint32_t entries) {
  sizes.counts = entries;
  sizes.small_stacks = entries;
  sizes.medium_stacks = entries / 2;
  sizes.large_stacks = std::max(entries / 8, 256U);
}

}  // namespace

MapSizes MapSizes::WithWindows(Hertz frequency, uint32_t cpus,
                               std::chrono::nanoseconds window) const {
  const uint64_t ticks_per_second = static_cast<uint64_t>(frequency.value) * std::max(cpus, 1U);
  const uint64_t ticks = TicksIn(window, ticks_per_second);
  const uint64_t most = std::max<uint64_t>(kMaxEntries, ticks_per_second);
  MapSizes sizes = *this;
  SetEntries(sizes,
             static_cast<uint32_t>(std::clamp<uint64_t>(ticks + ticks / 4, kMinEntries, most)));
  return sizes;
}

MapSizes MapSizes::WithWindowBytes(uint64_t most_bytes, uint32_t possible_cpus) const {
  MapSizes sizes = *this;
  while (sizes.counts > kMinEntries && sizes.BytesOfWindows(possible_cpus) > most_bytes) {
    SetEntries(sizes, std::max(sizes.counts - sizes.counts / 32, kMinEntries));
  }
  return sizes;
}

MapSizes MapSizes::WithJournals(Hertz frequency, uint32_t cpus, std::chrono::nanoseconds window,
                                uint64_t most_bytes) const {
  MapSizes sizes = *this;
  sizes.journal_cpus = std::max(cpus, 1U);
  const uint64_t most =
      std::clamp(most_bytes / sizes.Journals(cpus), kMinJournalBytes, kMaxJournalBytes);
  const uint64_t wanted = TicksIn(window, frequency.value) * kUsualJournalBytes;
  const uint64_t bytes = std::clamp(wanted, kMinJournalBytes, most);
  sizes.journal_bytes = static_cast<uint32_t>(bytes / kMinJournalBytes * kMinJournalBytes);
  return sizes;
}

MapSizes MapSizes::WithColdRing(Hertz frequency, uint32_t cpus, uint64_t most_bytes) const {
  const uint64_t ticks_per_second = static_cast<uint64_t>(frequency.value) * std::max(cpus, 1U);
  const uint64_t most = std::clamp(std::bit_floor(most_bytes), kMinColdBytes, kMaxColdBytes);
  MapSizes sizes = *this;
  sizes.cold_bytes = static_cast<uint32_t>(
      std::clamp(std::bit_ceil(ticks_per_second / 4 * kUsualColdBytes), kMinColdBytes, most));
  return sizes;
}

uint64_t MapSizes::BytesOfWindows(uint32_t possible_cpus) const {
  const auto both = [&](uint64_t entries, uint64_t key, uint64_t value) {
    return 2 * HashBytes(entries, key, value, possible_cpus);
  };
  return both(counts, sizeof(pyro_sample_key), sizeof(pyro_sample_count)) +
         both(small_stacks, sizeof(uint64_t), sizeof(pyro_stack_small)) +
         both(medium_stacks, sizeof(uint64_t), sizeof(pyro_stack_medium)) +
         both(large_stacks, sizeof(uint64_t), sizeof(pyro_stack_large));
}

uint64_t MapSizes::Bytes(uint32_t possible_cpus) const {
  const uint64_t shipping = shipping_cpus == 0 ? possible_cpus : shipping_cpus;
  // Beside a ring's data are the list of its pages, twice, and three for its positions.
  const uint64_t ring = cold_bytes + cold_bytes / 256 + (uint64_t{64} << 10);
  return BytesOfWindows(possible_cpus) + BytesOfJournals(possible_cpus) + ring +
         shipping * PYRO_PROGRAMS * kColdBuffer +
         uint64_t{mapping_parts} * PYRO_POOL_PART * sizeof(pyro_mapping) +
         HashBytes(processes, sizeof(uint64_t), sizeof(pyro_process), possible_cpus) +
         FixedBytes(possible_cpus) + kPerCpu * possible_cpus * PYRO_PROGRAMS;
}

std::chrono::nanoseconds MapSizes::TimeUntil(uint64_t entries, uint64_t used,
                                             uint64_t ticks_per_second) {
  const uint64_t room = entries - std::min(used, entries);
  return std::chrono::nanoseconds(room * 1'000'000'000 / std::max<uint64_t>(ticks_per_second, 1));
}

}  // namespace pyrometer
