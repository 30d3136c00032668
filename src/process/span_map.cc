// SPDX-License-Identifier: Apache-2.0
#include "process/span_map.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace pyrometer {
namespace {

constexpr size_t kMostSpans = 64;  // of a chunk: 4 KiB

}  // namespace

size_t SpanMap::ChunkFor(Address address) const {
  const auto after = std::ranges::upper_bound(
      *chunks_, address, {}, [](const std::shared_ptr<Chunk>& c) { return c->front().start(); });
  return after == chunks_->begin() ? 0 : static_cast<size_t>(after - chunks_->begin()) - 1;
}

template <typename Vector, typename... From>
std::shared_ptr<Vector> SpanMap::Make(From&&... from) const {
  return std::allocate_shared<Vector>(Charged<Vector>(share_), std::forward<From>(from)...,
                                      typename Vector::allocator_type(share_));
}

template <typename Vector>
bool SpanMap::IsOwn(const std::shared_ptr<Vector>& vector) const {
  return vector.use_count() == 1 && vector->get_allocator().share() == share_;
}

SpanMap::Chunks& SpanMap::WritableChunks() {
  if (!IsOwn(chunks_)) chunks_ = Make<Chunks>(std::as_const(*chunks_));
  return *chunks_;
}

SpanMap::Chunk& SpanMap::Writable(size_t index) {
  std::shared_ptr<Chunk>& chunk = WritableChunks()[index];
  if (!IsOwn(chunk)) chunk = Make<Chunk>(std::as_const(*chunk));
  return *chunk;
}

void SpanMap::ChargeTo(std::shared_ptr<UserShare> share) {
  share_ = std::move(share);
  if (chunks_.use_count() != 1) return;
  const Chunks& chunks = WritableChunks();
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].use_count() == 1) Writable(i);
  }
}

const MappedSpan* SpanMap::At(Address address) const {
  if (empty()) return nullptr;
  const Chunk& chunk = *(*chunks_)[ChunkFor(address)];
  const auto after = std::ranges::upper_bound(chunk, address, {}, &MappedSpan::start);
  if (after == chunk.begin()) return nullptr;
  const MappedSpan& span = *std::prev(after);
  return address < span.end() ? &span : nullptr;
}

std::vector<MappedSpan> SpanMap::Overlapping(Address start, Address end) const {
  std::vector<MappedSpan> found;
  if (empty()) return found;
  for (size_t i = ChunkFor(start); i < chunks_->size(); ++i) {
    const Chunk& chunk = *(*chunks_)[i];
    if (chunk.front().start() >= end) break;
    for (const MappedSpan& span : chunk) {
      if (span.start() < end && start < span.end()) found.push_back(span);
    }
  }
  return found;
}

void SpanMap::Add(const MappedSpan& span) {
  if (empty()) {
    chunks_ = Make<Chunks>(size_t{1}, Make<Chunk>(size_t{1}, span));
    size_ = 1;
    return;
  }
  ++size_;
  size_t index = ChunkFor(span.start());
  if ((*chunks_)[index]->size() == kMostSpans) {
    // What is read of a large program comes in order, and fills each chunk.
    if (index + 1 == chunks_->size() && (*chunks_)[index]->back().start() < span.start()) {
      WritableChunks().push_back(Make<Chunk>(size_t{1}, span));
      return;
    }
    Split(index);
    index = ChunkFor(span.start());
  }
  Chunk& chunk = Writable(index);
  chunk.insert(std::ranges::upper_bound(chunk, span.start(), {}, &MappedSpan::start), span);
}

void SpanMap::Split(size_t index) {
  Chunk& chunk = Writable(index);
  const auto middle = chunk.begin() + kMostSpans / 2;
  auto rest = Make<Chunk>(middle, chunk.end());
  chunk.erase(middle, chunk.end());
  chunks_->insert(chunks_->begin() + static_cast<ptrdiff_t>(index) + 1, std::move(rest));
}

void SpanMap::Erase(Address start) {
  if (empty()) return;
  const size_t index = ChunkFor(start);
  const Chunk& looked_at = *(*chunks_)[index];
  const auto found = std::ranges::lower_bound(looked_at, start, {}, &MappedSpan::start);
  if (found == looked_at.end() || found->start() != start) return;
  const ptrdiff_t place = found - looked_at.begin();
  Chunk& chunk = Writable(index);
  chunk.erase(chunk.begin() + place);
  --size_;
  if (chunk.empty()) {
    chunks_->erase(chunks_->begin() + static_cast<ptrdiff_t>(index));
    return;
  }
  MergeSmall(index);
  if (index > 0) MergeSmall(index - 1);
}

// A chunk and the next one become one if both are small, so that chunks stay few.
void SpanMap::MergeSmall(size_t index) {
  if (index + 1 >= chunks_->size()) return;
  const std::shared_ptr<Chunk> next = (*chunks_)[index + 1];
  if ((*chunks_)[index]->size() + next->size() > kMostSpans / 2) return;
  Chunk& chunk = Writable(index);
  chunk.insert(chunk.end(), next->begin(), next->end());
  chunks_->erase(chunks_->begin() + static_cast<ptrdiff_t>(index) + 1);
}

size_t SpanMap::OwnBytes() const {
  if (!chunks_ || chunks_.use_count() > 1) return 0;
  size_t bytes = chunks_->capacity() * sizeof(chunks_->front());
  for (const std::shared_ptr<Chunk>& chunk : *chunks_) {
    if (chunk.use_count() == 1) bytes += chunk->capacity() * sizeof(MappedSpan);
  }
  return bytes;
}

void SpanMap::ForEach(const std::function<void(const MappedSpan&)>& visit) const {
  if (!chunks_) return;
  for (const std::shared_ptr<Chunk>& chunk : *chunks_) {
    for (const MappedSpan& span : *chunk) visit(span);
  }
}

}  // namespace pyrometer
