// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/spill_file.h"
#include "base/spilled_bytes.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// The rows of one table: in the spill file, or in memory where that has no room. What neither has
// room for cannot be read. Put() comes before all else; then thread-safe.
class SpilledRows : public RowSink, public StoredRows {
 public:
  static constexpr size_t kMostInMemory = size_t{8} << 20;  // bytes

  // A null `file` has no room.
  explicit SpilledRows(const std::shared_ptr<SpillFile>& file)
      : bytes_({.file = file,
                .most_spilled = file == nullptr ? 0 : file->most() / 4,  // see ArtifactStore
                .most_in_memory = kMostInMemory}) {}

  void Put(std::span<const pyro_unwind_row> rows) override { bytes_.Put(std::as_bytes(rows)); }
  bool Read(size_t first, std::span<pyro_unwind_row> out) const override {
    return bytes_.Read(first * sizeof(pyro_unwind_row), std::as_writable_bytes(out));
  }

  // Bytes of rows in memory, and in the spill file.
  size_t bytes() const { return bytes_.in_memory(); }
  uint64_t spilled() const { return bytes_.spilled(); }

 private:
  SpilledBytes bytes_;
};

}  // namespace pyrometer
