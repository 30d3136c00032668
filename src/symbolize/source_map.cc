// SPDX-License-Identifier: Apache-2.0
#include "symbolize/source_map.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "binary/byte_source.h"
#include "binary/dwarf_cursor.h"
#include "symbolize/source_map_format.h"

namespace pyrometer {
namespace {

constexpr uint64_t kMostBlocks = uint64_t{1} << 20;
constexpr size_t kUsualText = 128;
constexpr size_t kMaxText = 4096;  // longer ones are cut

template <typename T>
bool ReadAs(const StoredBytes& bytes, uint64_t offset, T& out) {
  return bytes.Read(offset, std::as_writable_bytes(std::span(&out, 1)));
}

}  // namespace

Result<SourceMap> SourceMap::From(std::shared_ptr<const StoredBytes> bytes) {
  const Error malformed = Fail(ErrorCode::kMalformed, "no map of source lines");
  SourceMapHeader header;
  if (!ReadAs(*bytes, 0, header) || header.magic != kSourceMapMagic) return malformed;
  SourceMap map;
  map.base_ = header.base;
  map.is_cut_ = header.is_cut != 0;
  map.lost_ = header.lost;
  uint64_t at = sizeof(header);
  bool fits = true;
  const auto place = [&](uint64_t count, uint64_t size) {
    const uint64_t begin = at;
    fits = fits && at <= bytes->size() && count <= (bytes->size() - at) / size;
    if (fits) at += count * size;
    return begin;
  };
  map.texts_at_ = place(map.texts_size_ = header.texts, 1);
  map.paths_at_ = place(map.paths_ = header.paths, sizeof(SourceMapPath));
  map.scopes_at_ = place(map.scopes_ = header.scopes, sizeof(SourceMapScope));
  map.rows_at_ = place(map.rows_size_ = header.rows, 1);
  const uint64_t blocks_at = place(header.blocks, sizeof(Block));
  if (!fits || header.blocks > kMostBlocks) return malformed;
  static_assert(sizeof(Block) == sizeof(SourceMapBlock));
  map.blocks_.resize(header.blocks);
  if (!bytes->Read(blocks_at, std::as_writable_bytes(std::span(map.blocks_)))) return malformed;
  if (!map.empty()) map.stored_ = std::move(bytes);
  return map;
}

std::vector<SourceFrame> SourceMap::Find(ElfAddress address) const {
  const uint64_t offset = address.value() - base_;  // wraps below base_, which is out of range
  if (empty() || offset > ~uint32_t{0}) return {};
  const std::optional<Place> place = PlaceOf(static_cast<uint32_t>(offset));
  if (!place || (place->scope == 0 && place->path == 0)) return {};
  std::vector<SourceFrame> frames;
  frames.push_back({.name = {}, .path = PathOf(place->path), .line = place->line});
  for (uint32_t number = place->scope; number != 0;) {
    SourceMapScope scope;
    if (number > scopes_ || !ReadAs(*stored_, scopes_at_ + (number - 1) * sizeof(scope), scope)) {
      break;
    }
    frames.back().name = TextAt(scope.name);
    if (scope.parent >= number || frames.size() > kSourceMapMaxDepth) break;
    number = scope.parent;
    if (number == 0) break;
    frames.push_back({.name = {}, .path = PathOf(scope.call_path), .line = scope.call_line});
  }
  return frames;
}

// The row that covers `offset`.
std::optional<SourceMap::Place> SourceMap::PlaceOf(uint32_t offset) const {
  const auto after = std::ranges::upper_bound(blocks_, offset, {}, &Block::start);
  if (after == blocks_.begin()) return std::nullopt;
  const Block& block = *std::prev(after);
  if (block.at > rows_size_) return std::nullopt;
  std::vector<std::byte> bytes(
      std::min<uint64_t>(kSourceMapBlockRows * kSourceMapMaxRow, rows_size_ - block.at));
  if (!stored_->Read(rows_at_ + block.at, bytes)) return std::nullopt;
  DwarfCursor in(bytes);
  uint64_t address = block.start;
  Place now;
  Place found;
  for (size_t row = 0; row < kSourceMapBlockRows && !in.AtEnd(); ++row) {
    address += in.Uleb();
    now.scope += static_cast<uint32_t>(in.Sleb());
    now.path += static_cast<uint32_t>(in.Sleb());
    now.line += static_cast<uint32_t>(in.Sleb());
    if (!in.ok() || address > offset) break;
    found = now;
  }
  return found;
}

std::string SourceMap::PathOf(uint32_t path) const {
  SourceMapPath parts;
  if (path == 0 || path > paths_ ||
      !ReadAs(*stored_, paths_at_ + (path - 1) * sizeof(parts), parts)) {
    return {};
  }
  std::string whole = TextAt(parts.directory);
  if (!whole.empty() && !whole.ends_with('/')) whole += '/';
  return whole + TextAt(parts.file);
}

std::string SourceMap::TextAt(uint64_t offset) const {
  if (offset >= texts_size_) return {};
  std::string text;
  for (const size_t most : {kUsualText, kMaxText}) {
    text.resize(std::min<uint64_t>(most, texts_size_ - offset));
    if (!stored_->Read(texts_at_ + offset, std::as_writable_bytes(std::span(text)))) return {};
    const size_t size = ::strnlen(text.data(), text.size());
    const bool is_whole = size < text.size();
    text.resize(size);
    if (is_whole) break;
  }
  return text;
}

}  // namespace pyrometer
