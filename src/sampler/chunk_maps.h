// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>

#include "base/unique_fd.h"
#include "sampler/row_chunks.h"

namespace pyrometer {

// Chunks as inner maps of the kernel's `chunks`. They are mapped into this process only while being
// written: otherwise their memory would count twice, as the kernel's and as this process's.
class ChunkMaps : public ChunkMemory {
 public:
  explicit ChunkMaps(int outer_fd) : outer_fd_(outer_fd) {}

  Result<void> Make(uint16_t slot) override;
  void Remove(uint16_t slot) override;
  Result<void> Write(uint16_t slot, uint16_t first, std::span<const pyro_unwind_row> rows) override;

 private:
  int outer_fd_;
  std::map<uint16_t, UniqueFd> maps_;
};

}  // namespace pyrometer
