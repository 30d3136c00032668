// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/node_hash_map.h"
#include "pyrometer/ids.h"
#include "symbolize/perf_map.h"
#include "symbolize/perf_map_reader.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// The perf maps of processes, which share one budget of memory at any time, and one of bytes that
// are read for a window. What was not needed for some windows goes first; then the small ones have
// what they ask for, and the others equal parts of the rest. Not thread-safe.
class PerfMaps {
 public:
  struct Budget {
    size_t bytes = size_t{16} << 20;        // of all perf maps; of one a quarter
    uint64_t to_read = uint64_t{64} << 20;  // of their files, for one window
  };

  struct Entry {
    PerfMap map;
    // It could not be read on when it was last tried: what is known may be outdated.
    bool is_behind = false;
    uint32_t window = 0;  // when it was last needed
    size_t demand = 0;    // what it would take if it might, as far as is known
  };

  // `reader` and `counts` must outlive this.
  PerfMaps(PerfMapReader& reader, const Budget& budget, SymbolizerCounts& counts);

  // The perf map of `process`, empty at first, which is needed in `window`. Valid until
  // EndWindow().
  Entry& Need(ProcessKey process, uint32_t window);

  // Notes what there is to read in `fd`, which counts for how much others may take. For as many as
  // are known before the first is updated. False: an update would find nothing.
  bool Look(Entry& entry, int fd);

  // Reads on in `fd`, which stays the caller's; what cannot be read on is behind. May take memory
  // from other perf maps, which forget what they read first, or everything.
  void Update(Entry& entry, int fd, PerfMap::Writer writer);

  // Drops perf maps that were not needed in `unused_since` or later.
  void EndWindow(uint32_t unused_since);

  size_t bytes() const { return bytes_; }  // of all

 private:
  // What one may have, so that those that were needed of late have what they demand, and where that
  // is too much all that demand more have the same.
  size_t FairLevel() const;
  // So that `entry` may take `needed`, or what it may have: takes from those that were not needed
  // of late, then from those that have more than they may.
  size_t DemandOf(const Entry& entry, uint64_t unread) const;
  void MakeRoomFor(const Entry& entry, size_t needed);
  void Shrink(Entry& entry, size_t bytes);
  void Evict(Entry& entry);
  void CountLosses(const PerfMap::Losses& before, const PerfMap::Losses& after);

  PerfMapReader& reader_;
  const Budget budget_;
  SymbolizerCounts& counts_;
  absl::node_hash_map<ProcessKey, Entry> entries_;
  size_t bytes_ = 0;
  size_t level_;            // see FairLevel()
  bool is_planned_ = true;  // the level counts with all that was looked at
  uint32_t window_ = 0;     // the latest
  uint64_t to_read_;        // for this window
  uint64_t reserved_ = 0;   // of that, for those that were behind in the last one
  uint64_t refused_ = 0;    // what was to be read and was not
};

}  // namespace pyrometer
