// SPDX-License-Identifier: Apache-2.0
#include "profiler/spilled_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyrometer {

void SpilledRows::Put(std::span<const pyro_unwind_row> rows) {
  if (rows.empty()) return;
  const size_t first = pieces_.empty() ? 0 : pieces_.back().first + pieces_.back().count;
  Piece& piece = pieces_.emplace_back();
  piece.first = first;
  piece.count = rows.size();
  if (file_ != nullptr) {
    if (auto extent = file_->Write(std::as_bytes(rows))) {
      piece.extent = *std::move(extent);
      return;
    }
  }
  if (bytes_ + rows.size_bytes() > kMostInMemory) return;
  piece.rows.assign(rows.begin(), rows.end());
  bytes_ += rows.size_bytes();
}

bool SpilledRows::Read(size_t first, std::span<pyro_unwind_row> out) const {
  const auto after = std::ranges::upper_bound(pieces_, first, {}, &Piece::first);
  if (after == pieces_.begin()) return out.empty();
  for (auto piece = std::prev(after); !out.empty(); ++piece) {
    if (piece == pieces_.end() || first - piece->first >= piece->count) return false;
    const size_t count = std::min(out.size(), piece->count - (first - piece->first));
    if (!ReadPiece(*piece, first - piece->first, out.first(count))) return false;
    first += count;
    out = out.subspan(count);
  }
  return true;
}

bool SpilledRows::ReadPiece(const Piece& piece, size_t first, std::span<pyro_unwind_row> out) {
  if (piece.extent == nullptr && piece.rows.empty()) return false;
  if (piece.extent == nullptr) {
    std::ranges::copy(std::span(piece.rows).subspan(first, out.size()), out.begin());
    return true;
  }
  return piece.extent->Read(first * sizeof(pyro_unwind_row), std::as_writable_bytes(out))
      .has_value();
}

}  // namespace pyrometer
