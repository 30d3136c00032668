// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/spill_file.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// The rows of one table, in pieces: in the spill file, or in memory where that has no room. What
// neither has room for cannot be read.
// Put() comes before all else; then thread-safe.
class SpilledRows : public RowSink, public StoredRows {
 public:
  static constexpr size_t kMostInMemory = size_t{8} << 20;  // bytes

  // A null `file` has no room.
  explicit SpilledRows(std::shared_ptr<SpillFile> file) : file_(std::move(file)) {}

  void Put(std::span<const pyro_unwind_row> rows) override;
  bool Read(size_t first, std::span<pyro_unwind_row> out) const override;

  // Bytes of rows in memory.
  size_t bytes() const { return bytes_; }

 private:
  struct Piece {
    size_t first = 0;  // number of its first row
    size_t count = 0;
    std::unique_ptr<const SpillFile::Extent> extent;  // null: the rows are in `rows`
    std::vector<pyro_unwind_row> rows;
  };

  static bool ReadPiece(const Piece& piece, size_t first, std::span<pyro_unwind_row> out);

  const std::shared_ptr<SpillFile> file_;
  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
};

}  // namespace pyrometer
