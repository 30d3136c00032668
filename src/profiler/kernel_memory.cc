// SPDX-License-Identifier: Apache-2.0
#include "profiler/kernel_memory.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "sampler/sampler.h"

namespace pyrometer {
namespace {

constexpr uint64_t kTwoCpus = 40'000'000;
constexpr uint64_t k256Cpus = 150'000'000;
constexpr uint64_t kLeast = 20'000'000;
// The kernel takes these for each CPU that may come, whatever the sizes: spare elements of hash
// maps, and scratch memory.
constexpr uint64_t kLeastOfCpu = 40'000;

// 64 KiB hold what 80 short programs do, each with 800 bytes of fork, exec, mappings and exit.
constexpr uint64_t kMinEventRing = uint64_t{64} << 10;
constexpr uint64_t kMaxEventRing = uint64_t{512} << 10;
// Beside a ring: the page of its positions, and its bell's two.
constexpr uint64_t kEventPages = 3;

constexpr uint64_t kMinTables = uint64_t{8} << 20;
constexpr uint64_t kMaxTables = uint64_t{64} << 20;

// Of CPUs that come later these many may ship samples; a buffer is 71 KB, and hypervisors that
// announce 240 CPUs for a machine of two are common.
constexpr uint32_t kFewCpus = 64;

}  // namespace

KernelMemory::Machine KernelMemory::Machine::This(std::span<const uint32_t> cpus) {
  const auto page = static_cast<uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 1L));
  const auto pages = static_cast<uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L));
  return {.cpus = static_cast<uint32_t>(cpus.size()),
          .possible_cpus = Sampler::PossibleCpus(),
          .highest_cpu = cpus.empty() ? 0 : *std::ranges::max_element(cpus),
          .bytes = pages * page,
          .page = page};
}

uint64_t KernelMemory::Limit(const Machine& machine) {
  const uint64_t of_cpus =
      kTwoCpus + (k256Cpus - kTwoCpus) * (std::max(machine.cpus, 2U) - 2) / (256 - 2);
  const uint64_t least = kLeast + kLeastOfCpu * machine.possible_cpus;
  return std::max(least, std::min(of_cpus, machine.bytes / 32));
}

// Where even the least windows leave nothing, rings for events shrink first, and then CPUs that may
// come later are left without buffers for cold samples. Else the ring of cold samples and the
// journals get up to a third each of what the others leave, and the window maps the rest.
KernelMemory KernelMemory::For(const Machine& machine, Hertz frequency,
                               std::chrono::nanoseconds window) {
  const uint64_t limit = Limit(machine);
  const uint32_t cpus = std::max(machine.cpus, 1U);
  KernelMemory memory;
  memory.event_ring_bytes =
      std::clamp(std::bit_floor(limit / 4 / cpus), kMinEventRing, kMaxEventRing);
  memory.table_budget = std::clamp(machine.bytes / 64, kMinTables, kMaxTables);
  // 32 CPUs' worth of programs have some 60,000 mappings: 100 containers of 12 processes.
  memory.maps.mapping_parts = std::clamp(std::bit_floor(cpus / 32), 1U, 8U);
  memory.maps.processes = std::clamp(std::bit_ceil(cpus * 256), 16384U, 65536U);
  memory.maps.shipping_cpus =
      std::min(machine.possible_cpus, std::max(kFewCpus, 2 * (machine.highest_cpu + 1)));
  const uint32_t numbered = machine.highest_cpu + 1;
  const auto left = [&] { return limit - std::min(limit, memory.Bytes(machine)); };
  memory.maps = memory.maps.WithColdRing(frequency, cpus, 0)
                    .WithJournals(frequency, numbered, window, 0)
                    .WithWindowBytes(0, machine.possible_cpus);
  while (left() == 0 && memory.event_ring_bytes > kMinEventRing) memory.event_ring_bytes /= 2;
  if (left() == 0) memory.maps.shipping_cpus = std::min(machine.possible_cpus, numbered);

  const uint64_t cold = memory.maps.cold_bytes + left() / 3;
  memory.maps = memory.maps.WithColdRing(frequency, cpus, cold);
  const uint64_t journals = memory.maps.BytesOfJournals(machine.possible_cpus) + left() / 3;
  memory.maps = memory.maps.WithJournals(frequency, numbered, window, journals);
  const uint64_t windows = memory.maps.BytesOfWindows(machine.possible_cpus) + left();
  memory.maps = memory.maps.WithWindows(frequency, cpus, window)
                    .WithWindowBytes(windows, machine.possible_cpus);
  return memory;
}

uint64_t KernelMemory::Bytes(const Machine& machine) const {
  return maps.Bytes(machine.possible_cpus) + BytesOfEventRings(machine);
}

uint64_t KernelMemory::BytesOfEventRings(const Machine& machine) const {
  return machine.cpus * (event_ring_bytes + kEventPages * machine.page);
}

}  // namespace pyrometer
