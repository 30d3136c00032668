// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "base/spill_file.h"
#include "base/stored_bytes.h"

namespace pyrometer {

// Bytes that are put together once, in pieces, and then read: kept in the spill file, or in memory
// where that has no room. All calls of Put() come before any other; then thread-safe.
class SpilledBytes : public ByteWriter, public StoredBytes {
 public:
  struct Options {
    std::shared_ptr<SpillFile> file{};  // null: has no room
    uint64_t most_spilled = std::numeric_limits<uint64_t>::max();
    size_t most_in_memory = 0;  // where the file has no room
    size_t kept_in_memory = 0;  // this much does not go into the file: it would not be worth it
  };

  explicit SpilledBytes(Options options) : options_(std::move(options)) {}

  // False if there is no room. The next bytes then follow a gap that cannot be read.
  bool Put(std::span<const std::byte> bytes) override;

  bool Read(uint64_t offset, std::span<std::byte> out) const override;

  // Of all that was put, gaps included.
  uint64_t size() const override {
    return pieces_.empty() ? 0 : pieces_.back().first + pieces_.back().size;
  }
  size_t in_memory() const override { return in_memory_; }
  uint64_t spilled() const override { return spilled_; }

 private:
  struct Piece {
    uint64_t first = 0;
    uint64_t size = 0;
    std::unique_ptr<const SpillFile::Extent> extent;  // null: the bytes are in `bytes`
    std::vector<std::byte> bytes;                     // empty, too: a gap
    bool is_gap() const { return extent == nullptr && bytes.empty(); }
  };

  bool Store(std::span<const std::byte> bytes, Piece& piece);
  bool Spill(std::span<const std::byte> bytes, Piece& piece);
  static bool ReadPiece(const Piece& piece, uint64_t offset, std::span<std::byte> out);

  const Options options_;
  std::vector<Piece> pieces_;
  size_t in_memory_ = 0;
  uint64_t spilled_ = 0;
};

}  // namespace pyrometer
