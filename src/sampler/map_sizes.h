// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// How large the maps are that are made at load.
struct MapSizes {
  // Entries of one half of each window map.
  uint32_t counts = 4096;
  uint32_t small_stacks = 4096;
  uint32_t medium_stacks = 2048;
  uint32_t large_stacks = 512;
  uint32_t journal_bytes = 16 << 10;  // of a journal, of which a CPU has one for each half
  uint32_t journal_cpus = 0;          // CPUs that have journals; 0: all possible ones
  uint32_t processes = 16384;
  uint32_t mapping_parts = 1;     // of the pool of mappings
  uint32_t cold_bytes = 2 << 20;  // of the ring buffer of cold samples; a power of two
  uint32_t shipping_cpus = 0;     // CPUs whose samples may become cold; 0: all possible ones

  // With room for as many different stacks as there are ticks in `window`, up to kMaxEntries or one
  // second of ticks, whichever is more. A window that fills its maps is drained early
  // (WindowSource::NearlyFull).
  MapSizes WithWindows(Hertz frequency, uint32_t cpus, std::chrono::nanoseconds window) const;

  // With journals on the first `cpus` CPUs for all ticks of `window` if their stacks are of the
  // usual depth, or for as many as `most_bytes` of journals hold. All else goes to the window maps.
  MapSizes WithJournals(Hertz frequency, uint32_t cpus, std::chrono::nanoseconds window,
                        uint64_t most_bytes) const;

  // With window maps that are no larger than that they, of both halves, take `most_bytes`; but not
  // smaller than kMinEntries.
  MapSizes WithWindowBytes(uint64_t most_bytes, uint32_t possible_cpus) const;

  // With a ring for all ticks of a quarter of a second if their stacks are of the usual depth,
  // within bounds. It is read more often than that.
  MapSizes WithColdRing(Hertz frequency, uint32_t cpus, uint64_t most_bytes) const;

  // How many journals there are.
  uint32_t Journals(uint32_t possible_cpus) const {
    return (journal_cpus == 0 ? possible_cpus : journal_cpus) * PYRO_PROGRAMS * 2;
  }

  uint64_t BytesOfJournals(uint32_t possible_cpus) const {
    return uint64_t{Journals(possible_cpus)} * journal_bytes;
  }

  // What the kernel takes for all maps at load, or a little more, where there may be so many CPUs.
  // Rows of unwind tables come later, and have a budget of their own.
  uint64_t Bytes(uint32_t possible_cpus) const;
  uint64_t BytesOfWindows(uint32_t possible_cpus) const;

  static constexpr uint64_t NearlyFull(uint64_t capacity) { return capacity / 4 * 3; }
  // The least time until a map of `used` entries has `entries`, if every tick adds one.
  static std::chrono::nanoseconds TimeUntil(uint64_t entries, uint64_t used,
                                            uint64_t ticks_per_second);

  static constexpr uint64_t kUsualColdBytes = sizeof(pyro_cold_sample) + 16384;
  static constexpr uint64_t kMinColdBytes = uint64_t{2} << 20;
  // A quarter of a second of all the cold samples that Sampler::Options allow.
  static constexpr uint64_t kMaxColdBytes = uint64_t{16} << 20;

  static constexpr uint64_t kUsualJournalBytes = PYRO_JOURNAL_HEAD + uint64_t{30} * 8;
  // Journals are whole multiples of this.
  static constexpr uint64_t kMinJournalBytes = 4096;
  static constexpr uint64_t kMaxJournalBytes = uint64_t{1} << 20;

  static constexpr uint32_t kMinEntries = 1024;
  static constexpr uint32_t kMaxEntries = 4096;
};

}  // namespace pyrometer
