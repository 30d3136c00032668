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
  return std::min(of_cpus, std::max(machine.bytes / 32, kLeast));
}

// The ring of cold samples gets up to a third of what the others leave, the window maps the rest.
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
  const auto left = [&] {
    const uint64_t others =
        memory.Bytes(machine) - memory.maps.BytesOfWindows(machine.possible_cpus);
    return limit - std::min(limit, others);
  };
  memory.maps.cold_bytes = 0;
  memory.maps = memory.maps.WithColdRing(frequency, cpus, left() / 3);
  memory.maps = memory.maps.WithWindows(frequency, cpus, window);
  memory.maps = memory.maps.WithWindowBytes(left(), machine.possible_cpus);
  return memory;
}

uint64_t KernelMemory::Bytes(const Machine& machine) const {
  return maps.Bytes(machine.possible_cpus) + BytesOfEventRings(machine);
}

uint64_t KernelMemory::BytesOfEventRings(const Machine& machine) const {
  return machine.cpus * (event_ring_bytes + kEventPages * machine.page);
}

}  // namespace pyrometer
