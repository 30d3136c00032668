// SPDX-License-Identifier: Apache-2.0
#include "sampler/row_chunks.h"

#include "sampler/quarantine.h"

namespace pyrometer {

Result<RowChunks::Range> RowChunks::Store(std::span<const pyro_unwind_row> rows,
                                          MonotonicTime now) {
  Reuse(now);
  if (rows.size() > kMostRows) {
    return Fail(ErrorCode::kMalformed, "{} rows in one page of 64 KiB", rows.size());
  }
  const auto count = static_cast<uint32_t>(rows.size());
  std::optional<Range> range = Take(count);
  if (!range) {
    RETURN_IF_ERROR(MakeChunk());
    range = Take(count);
  }
  const Result<void> written = memory_.Write(range->chunk, range->first, rows);
  if (!written) {
    Retire(*range, now);
    return written.error();
  }
  return *range;
}

std::optional<RowChunks::Range> RowChunks::Take(uint32_t count) {
  const absl::MutexLock lock(&mutex_);
  for (auto& [slot, free] : chunks_) {
    const std::optional<uint32_t> first = free.Take(count);
    if (!first) continue;
    rows_ += count;
    return Range{slot, static_cast<uint16_t>(*first), static_cast<uint16_t>(count)};
  }
  return std::nullopt;
}

Result<void> RowChunks::MakeChunk() {
  ASSIGN_OR_RETURN(const uint16_t slot, UnusedSlot());
  RETURN_IF_ERROR(memory_.Make(slot));
  const absl::MutexLock lock(&mutex_);
  chunks_.emplace(slot, FreeRanges(PYRO_CHUNK_ROWS));
  return {};
}

Result<uint16_t> RowChunks::UnusedSlot() const {
  const absl::MutexLock lock(&mutex_);
  if (chunks_.size() >= max_chunks_) {
    return Fail(ErrorCode::kExhausted, "all {} chunks of unwind rows are full", max_chunks_);
  }
  uint16_t slot = 0;
  while (chunks_.contains(slot)) ++slot;
  return slot;
}

void RowChunks::Retire(Range range, MonotonicTime now) {
  const absl::MutexLock lock(&mutex_);
  rows_ -= range.count;
  resting_ += range.count;
  retired_.push_back({.when = now, .range = range});
}

void RowChunks::Reuse(MonotonicTime now) {
  for (const uint16_t slot : TakeEmptied(now)) memory_.Remove(slot);
}

// Ends the quarantine of what was retired long enough ago. Returns the chunks that are left empty,
// which are ours no more.
std::vector<uint16_t> RowChunks::TakeEmptied(MonotonicTime now) {
  const absl::MutexLock lock(&mutex_);
  std::vector<uint16_t> emptied;
  while (!retired_.empty() && IsOver(kReaderQuarantine, retired_.front().when, now)) {
    const Range range = retired_.front().range;
    retired_.pop_front();
    FreeRanges& free = chunks_.at(range.chunk);
    free.GiveBack(range.first, range.count);
    resting_ -= range.count;
    if (!free.AllFree(PYRO_CHUNK_ROWS)) continue;
    chunks_.erase(range.chunk);
    emptied.push_back(range.chunk);
  }
  return emptied;
}

size_t RowChunks::chunks() const {
  const absl::MutexLock lock(&mutex_);
  return chunks_.size();
}

size_t RowChunks::rows() const {
  const absl::MutexLock lock(&mutex_);
  return rows_;
}

size_t RowChunks::resting() const {
  const absl::MutexLock lock(&mutex_);
  return resting_;
}

}  // namespace pyrometer
