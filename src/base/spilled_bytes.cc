// SPDX-License-Identifier: Apache-2.0
#include "base/spilled_bytes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyrometer {

bool SpilledBytes::Put(std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  Piece piece{.first = size(), .size = bytes.size(), .extent = nullptr, .bytes = {}};
  if (Store(bytes, piece)) {
    pieces_.push_back(std::move(piece));
    return true;
  }
  // A gap, which takes no more memory however much is put into it.
  if (!pieces_.empty() && pieces_.back().is_gap()) {
    pieces_.back().size += piece.size;
  } else {
    pieces_.push_back(std::move(piece));
  }
  return false;
}

bool SpilledBytes::Store(std::span<const std::byte> bytes, Piece& piece) {
  const size_t after = in_memory_ + bytes.size();
  if (after > options_.kept_in_memory && Spill(bytes, piece)) return true;
  if (after > std::max(options_.most_in_memory, options_.kept_in_memory)) return false;
  piece.bytes.assign(bytes.begin(), bytes.end());
  in_memory_ = after;
  return true;
}

bool SpilledBytes::Spill(std::span<const std::byte> bytes, Piece& piece) {
  if (options_.file == nullptr || spilled_ + bytes.size() > options_.most_spilled) return false;
  Result<std::unique_ptr<const SpillFile::Extent>> extent = options_.file->Write(bytes);
  if (!extent) return false;
  piece.extent = *std::move(extent);
  spilled_ += piece.extent->room();
  return true;
}

bool SpilledBytes::Read(uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return true;
  const auto after = std::ranges::upper_bound(pieces_, offset, {}, &Piece::first);
  if (after == pieces_.begin()) return false;
  for (auto piece = std::prev(after); !out.empty(); ++piece) {
    if (piece == pieces_.end() || offset - piece->first >= piece->size) return false;
    const uint64_t in_piece = offset - piece->first;
    const auto size = static_cast<size_t>(std::min<uint64_t>(out.size(), piece->size - in_piece));
    if (!ReadPiece(*piece, in_piece, out.first(size))) return false;
    offset += size;
    out = out.subspan(size);
  }
  return true;
}

bool SpilledBytes::ReadPiece(const Piece& piece, uint64_t offset, std::span<std::byte> out) {
  if (piece.extent != nullptr) return piece.extent->Read(offset, out).has_value();
  if (piece.is_gap()) return false;
  std::ranges::copy(std::span(piece.bytes).subspan(offset, out.size()), out.begin());
  return true;
}

}  // namespace pyrometer
