// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_strings.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace pyrometer {

DwarfStrings::DwarfStrings(const ByteSource& section)
    : section_(section), chunks_(std::min<uint64_t>(section.size() / kChunk + 1, kMostChunks)) {}

const DwarfStrings::Chunk* DwarfStrings::ChunkOf(uint64_t offset) {
  const uint64_t number = offset / kChunk;
  Chunk& chunk = chunks_[number % chunks_.size()];
  if (chunk.number == number) return &chunk;
  chunk.number = ~uint64_t{0};
  chunk.bytes.resize(std::min<uint64_t>(kChunk, section_.size() - number * kChunk));
  const auto bytes = std::as_writable_bytes(std::span(chunk.bytes));
  if (!section_.Read(number * kChunk, bytes)) return nullptr;
  chunk.number = number;
  return &chunk;
}

std::string_view DwarfStrings::At(uint64_t offset) {
  const std::span<const std::byte> all = section_.in_memory();
  if (offset < all.size()) {
    const auto* const text = reinterpret_cast<const char*>(all.data() + offset);
    const size_t available = std::min<uint64_t>(all.size() - offset, kLongest);
    const size_t size = ::strnlen(text, available);
    return size < available ? std::string_view(text, size) : std::string_view();
  }
  joined_.clear();
  while (offset < section_.size() && joined_.size() < kLongest) {
    const Chunk* const chunk = ChunkOf(offset);
    if (chunk == nullptr) return {};
    const size_t at = offset % kChunk;
    const char* const text = chunk->bytes.data() + at;
    const size_t available = chunk->bytes.size() - at;
    const size_t size = ::strnlen(text, available);
    if (size < available && joined_.empty()) return {text, size};
    joined_.append(text, size);
    if (size < available) return joined_;
    offset += size;
  }
  return {};  // it does not end
}

}  // namespace pyrometer
