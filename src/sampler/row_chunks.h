// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/free_ranges.h"
#include "pyrometer/abi/unwind.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Memory for rows in chunks: the kernel's inner maps, or a test's vectors.
class ChunkMemory {
 public:
  virtual ~ChunkMemory() = default;
  // Makes chunk `slot`. Errors: kExhausted, or the kernel's.
  virtual Result<void> Make(uint16_t slot) = 0;
  virtual void Remove(uint16_t slot) = 0;
  // Writes rows of an existing chunk, from `first` on.
  virtual Result<void> Write(uint16_t slot, uint16_t first,
                             std::span<const pyro_unwind_row> rows) = 0;
};

// Allocates room for rows, within a budget of whole chunks. A chunk is made when no other has room
// and removed when all its rows are free again. Both make the kernel wait for an RCU grace period,
// so no lock is held meanwhile.
//
// One thread calls Store() and Reuse(); any may call the rest.
class RowChunks {
 public:
  // Of one range.
  static constexpr size_t kMostRows = std::numeric_limits<uint16_t>::max();

  struct Range {
    uint16_t chunk = 0;
    uint16_t first = 0;
    uint16_t count = 0;
  };

  // `memory` must outlive this.
  RowChunks(ChunkMemory& memory, size_t max_chunks) : memory_(memory), max_chunks_(max_chunks) {}

  // Allocates room for `rows` and writes them there. Errors: kExhausted if the budget does not
  // allow it, kMalformed if there are more than kMostRows; else the kernel's.
  Result<Range> Store(std::span<const pyro_unwind_row> rows, MonotonicTime now);

  // The rows are no longer referred to; their room is reused after kReaderQuarantine.
  void Retire(Range range, MonotonicTime now);

  // Frees what is out of quarantine. Store() does so too.
  void Reuse(MonotonicTime now);

  size_t chunks() const;
  size_t rows() const;     // in use
  size_t resting() const;  // rows retired and not yet free

 private:
  struct Retired {
    MonotonicTime when;
    Range range;
  };

  std::optional<Range> Take(uint32_t count);
  Result<void> MakeChunk();
  Result<uint16_t> UnusedSlot() const;
  std::vector<uint16_t> TakeEmptied(MonotonicTime now);

  ChunkMemory& memory_;
  const size_t max_chunks_;
  mutable absl::Mutex mutex_;
  std::map<uint16_t, FreeRanges> chunks_ ABSL_GUARDED_BY(mutex_);
  std::deque<Retired> retired_ ABSL_GUARDED_BY(mutex_);
  size_t rows_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t resting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pyrometer
