// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pyrometer/ids.h"
#include "sampler/map_sizes.h"

namespace pyrometer {

// How the memory is divided that the kernel holds for us: what is taken at the start, and stays
// the same from then on, has a limit that depends on the machine.
struct KernelMemory {
  struct Machine {
    uint32_t cpus = 1;           // online
    uint32_t possible_cpus = 1;  // the kernel takes memory for these at once
    uint32_t highest_cpu = 0;    // online, counted from 0
    uint64_t bytes = 0;          // of memory
    uint64_t page = 4096;        // bytes

    // The one that this runs on; `cpus` are online.
    static Machine This(std::span<const uint32_t> cpus);
  };

  MapSizes maps;
  size_t event_ring_bytes = 0;  // of each CPU's ring for process events
  size_t table_budget = 0;      // for rows of unwind tables, which are loaded as they are needed

  // Stands for the frequency of a counted event, of which nobody knows how often it comes: that of
  // the fastest clock, which takes all the memory there may be.
  static constexpr Hertz kOfCounted{10'000};

  static KernelMemory For(const Machine& machine, Hertz frequency, std::chrono::nanoseconds window);

  // All maps and rings but the rows together take so much at most: 40 MB with up to 2 CPUs, 150 MB
  // with 256, in between and beyond as their number says; but no more than a 32nd of the machine's
  // memory. Where that is less than the least that works, it is that: 20 MB, and 40 KB for each CPU
  // that may come.
  static uint64_t Limit(const Machine& machine);

  // What they take, or a little more.
  uint64_t Bytes(const Machine& machine) const;
  uint64_t BytesOfEventRings(const Machine& machine) const;
};

}  // namespace pyrometer
