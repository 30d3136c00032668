// SPDX-License-Identifier: Apache-2.0
#include "sampler/row_chunks.h"

#include "sampler/quarantine.h"

namespace pyrometer {

Result<RowChunks::Range> RowChunks::Store(std::span<const pyro_unwind_row> rows,
                                          MonotonicTime now) {
  Reuse(now);
  if (rows.size() > PYRO_CHUNK_ROWS) {
    return Fail(ErrorCode::kExhausted, "{} rows in one page of 64 KiB", rows.size());
  }
  const auto count = static_cast<uint32_t>(rows.size());
  std::optional<Range> range = Take(count);
  if (!range) {
    RETURN_IF_ERROR(MakeChunk());
    range = Take(count);
  }
  const Result<void> written = memory_.Write(range->chunk, range->first, rows);
  if (!written) {
    chunks_.at(range->chunk).GiveBack(range->first, range->count);
    return written.error();
  }
  rows_ += count;
  return *range;
}

std::optional<RowChunks::Range> RowChunks::Take(uint32_t count) {
  for (auto& [slot, free] : chunks_) {
    const std::optional<uint32_t> first = free.Take(count);
    if (first) {
      return Range{slot, static_cast<uint16_t>(*first), static_cast<uint16_t>(count)};
    }
  }
  return std::nullopt;
}

Result<void> RowChunks::MakeChunk() {
  if (chunks_.size() >= max_chunks_) {
    return Fail(ErrorCode::kExhausted, "all {} chunks of unwind rows are full", max_chunks_);
  }
  uint16_t slot = 0;
  while (chunks_.contains(slot)) ++slot;
  RETURN_IF_ERROR(memory_.Make(slot));
  chunks_.emplace(slot, FreeRanges(PYRO_CHUNK_ROWS));
  return {};
}

void RowChunks::Retire(Range range, MonotonicTime now) {
  rows_ -= range.count;
  retired_.push_back({.when = now, .range = range});
}

void RowChunks::Reuse(MonotonicTime now) {
  while (!retired_.empty() && IsOver(kReaderQuarantine, retired_.front().when, now)) {
    const Range range = retired_.front().range;
    retired_.pop_front();
    FreeRanges& free = chunks_.at(range.chunk);
    free.GiveBack(range.first, range.count);
    if (!free.AllFree(PYRO_CHUNK_ROWS)) continue;
    chunks_.erase(range.chunk);
    memory_.Remove(range.chunk);
  }
}

}  // namespace pyrometer
