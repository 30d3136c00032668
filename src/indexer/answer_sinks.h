// SPDX-License-Identifier: Apache-2.0
// Where the rest of an answer goes, piece by piece as it comes from another process.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/spilled_bytes.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// The table gets them in large pieces, however small those are in which they come.
class LargePieces {
 public:
  explicit LargePieces(SpilledBytes& bytes) : bytes_(bytes) {}
  Result<void> Put(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kRestStep) Flush();
    return {};
  }
  void Flush() {
    has_room_ = has_room_ && bytes_.Put(buffer_);
    buffer_.clear();
  }
  bool has_room() const { return has_room_; }

 private:
  static constexpr size_t kRestStep = size_t{256} << 10;

  SpilledBytes& bytes_;
  std::vector<std::byte> buffer_;
  bool has_room_ = true;
};

class RowsInMemory : public RowSink {
 public:
  void Put(std::span<const pyro_unwind_row> more) override {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  std::vector<pyro_unwind_row> rows;
};

}  // namespace pyrometer
