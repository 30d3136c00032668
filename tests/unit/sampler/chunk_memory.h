// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "sampler/row_chunks.h"

namespace pyrometer {

// Chunks in plain memory.
class VectorChunks : public ChunkMemory {
 public:
  Result<void> Make(uint16_t slot) override {
    if (refuse) return Fail(ErrorCode::kPermission, "no more maps");
    if (while_waiting) while_waiting();
    chunks[slot].resize(PYRO_CHUNK_ROWS);
    return {};
  }
  void Remove(uint16_t slot) override { chunks.erase(slot); }
  Result<void> Write(uint16_t slot, uint16_t first,
                     std::span<const pyro_unwind_row> rows) override {
    std::ranges::copy(rows, chunks.at(slot).begin() + first);
    return {};
  }

  std::map<uint16_t, std::vector<pyro_unwind_row>> chunks;
  bool refuse = false;
  std::function<void()> while_waiting;  // what other threads do while the kernel makes a chunk
};

}  // namespace pyrometer
