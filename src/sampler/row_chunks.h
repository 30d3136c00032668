// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "pyrometer/abi/unwind.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "sampler/free_ranges.h"

namespace pyrometer {

// Memory for rows, chunk by chunk: the kernel's inner maps, or a test's vectors.
class ChunkMemory {
 public:
  virtual ~ChunkMemory() = default;
  // Chunk `slot` comes into being. Errors: kExhausted or what the kernel says.
  virtual Result<void> Make(uint16_t slot) = 0;
  virtual void Remove(uint16_t slot) = 0;
  // Rows of an existing chunk, from `first` on.
  virtual Result<void> Write(uint16_t slot, uint16_t first,
                             std::span<const pyro_unwind_row> rows) = 0;
};

// Hands out room for rows, within a budget of whole chunks. Chunks are made when no other has room
// and removed when all their rows are free again.
class RowChunks {
 public:
  struct Range {
    uint16_t chunk = 0;
    uint16_t first = 0;
    uint16_t count = 0;
  };

  // `memory` must outlive this.
  RowChunks(ChunkMemory& memory, size_t max_chunks) : memory_(memory), max_chunks_(max_chunks) {}

  // Room for `rows`, which are written there. kExhausted if the budget does not allow it, or if
  // they are more than a chunk holds; else what the kernel says.
  Result<Range> Store(std::span<const pyro_unwind_row> rows, MonotonicTime now);

  // The rows are not referred to any more; their room is reused after kReaderQuarantine.
  void Retire(Range range, MonotonicTime now);

  // Gives back what is out of quarantine. Store() does it too.
  void Reuse(MonotonicTime now);

  size_t chunks() const { return chunks_.size(); }
  size_t rows() const { return rows_; }

 private:
  struct Retired {
    MonotonicTime when;
    Range range;
  };

  std::optional<Range> Take(uint32_t count);
  Result<void> MakeChunk();

  ChunkMemory& memory_;
  const size_t max_chunks_;
  std::map<uint16_t, FreeRanges> chunks_;
  std::deque<Retired> retired_;
  size_t rows_ = 0;  // in use
};

}  // namespace pyrometer
