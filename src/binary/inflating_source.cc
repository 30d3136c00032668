// SPDX-License-Identifier: Apache-2.0
#include "binary/inflating_source.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr size_t kMostChunks = 32;
constexpr uint64_t kChunksBetweenPoints = 8;
constexpr size_t kInputStep = size_t{1} << 20;

Error Malformed() {
  return Fail(ErrorCode::kMalformed, "a malformed compressed section");
}

// A place in the stream.
class Inflation {
 public:
  Inflation() { is_made_ = ::inflateInit(&stream_) == Z_OK; }
  Inflation(const Inflation& other) : at_(other.at_) {
    // zlib does not change what it copies from.
    is_made_ = ::inflateCopy(&stream_, const_cast<z_stream*>(&other.stream_)) == Z_OK;
    at_ -= other.stream_.avail_in;
    stream_.avail_in = 0;
  }
  ~Inflation() {
    if (is_made_) ::inflateEnd(&stream_);
  }
  Inflation& operator=(const Inflation&) = delete;

  // Fills `out`. `input` is read from where it was left. Errors: kMalformed if the stream ends
  // before; kExhausted.
  Result<void> Fill(const ByteSource& bytes, const CompressedSection& section,
                    std::span<std::byte> out, std::vector<std::byte>& input) {
    if (!is_made_) return Fail(ErrorCode::kExhausted, "zlib: no memory");
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out > 0) {
      if (stream_.avail_in == 0) {
        input.resize(std::min<uint64_t>(kInputStep, section.stored - at_));
        if (input.empty()) return Fail(ErrorCode::kMalformed, "a compressed section is cut");
        RETURN_IF_ERROR(bytes.Read(section.offset + at_, input));
        at_ += input.size();
        stream_.next_in = reinterpret_cast<Bytef*>(input.data());
        stream_.avail_in = static_cast<uInt>(input.size());
      }
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END && stream_.avail_out == 0) break;
      if (status != Z_OK) return Malformed();
    }
    return {};
  }

 private:
  z_stream stream_{};
  bool is_made_ = false;
  uint64_t at_ = 0;  // in what is stored: what was read of it, of which avail_in is not used yet
};

class InflatingSource : public ByteSource {
 public:
  InflatingSource(const ByteSource& bytes, const CompressedSection& section)
      : bytes_(bytes), section_(section), chunks_(kMostChunks) {}

  uint64_t size() const override { return section_.size; }
  Result<void> Read(uint64_t offset, std::span<std::byte> out) const override {
    if (!Within(offset, out.size(), size())) {
      return Fail(ErrorCode::kMalformed, "a section ends before offset {:#x}", offset);
    }
    const std::lock_guard lock(mutex_);
    while (!out.empty()) {
      ASSIGN_OR_RETURN(const Chunk* const chunk, ChunkAt(offset / kChunk));
      const size_t at = offset % kChunk;
      const size_t part = std::min(out.size(), chunk->bytes.size() - at);
      std::memcpy(out.data(), chunk->bytes.data() + at, part);
      out = out.subspan(part);
      offset += part;
    }
    return {};
  }

 private:
  struct Chunk {
    uint64_t number = ~uint64_t{0};
    std::vector<std::byte> bytes;
  };

  Result<const Chunk*> ChunkAt(uint64_t number) const {
    const Chunk& known = chunks_[number % kMostChunks];
    if (known.number == number) return &known;
    if (number >= failed_) return Malformed();
    // From where it is now, or from the last point before.
    auto point = points_.upper_bound(number);
    if (point != points_.begin() &&
        (now_ == nullptr || next_ > number || std::prev(point)->first > next_)) {
      --point;
      now_ = std::make_unique<Inflation>(*point->second);
      next_ = point->first;
      input_.clear();
    } else if (now_ == nullptr || next_ > number) {
      now_ = std::make_unique<Inflation>();
      next_ = 0;
    }
    while (next_ <= number) RETURN_IF_ERROR(InflateNext());
    return &chunks_[number % kMostChunks];
  }

  Result<void> InflateNext() const {
    if (next_ % kChunksBetweenPoints == 0 && !points_.contains(next_)) {
      points_.emplace(next_, std::make_unique<Inflation>(*now_));
    }
    Chunk& chunk = chunks_[next_ % kMostChunks];
    chunk.number = ~uint64_t{0};
    chunk.bytes.resize(std::min<uint64_t>(kChunk, size() - next_ * kChunk));
    if (Result<void> filled = now_->Fill(bytes_, section_, chunk.bytes, input_); !filled) {
      now_ = nullptr;
      if (filled.error().code() == ErrorCode::kMalformed) failed_ = next_;
      return filled;
    }
    chunk.number = next_++;
    return {};
  }

  const ByteSource& bytes_;
  const CompressedSection section_;
  mutable std::mutex mutex_;           // of all below
  mutable std::vector<Chunk> chunks_;  // each number has one place
  mutable std::map<uint64_t, std::unique_ptr<const Inflation>> points_;  // before these chunks
  mutable std::unique_ptr<Inflation> now_;
  mutable uint64_t next_ = 0;               // the chunk that now_ is before
  mutable uint64_t failed_ = ~uint64_t{0};  // the first that cannot be inflated, as far as known
  mutable std::vector<std::byte> input_;    // that now_ has not used yet
};

}  // namespace

Result<std::unique_ptr<ByteSource>> InflatingBytes(const ElfFile& elf, const Section& section) {
  ASSIGN_OR_RETURN(const CompressedSection compressed, FindCompressed(elf, section));
  if (compressed.kind != ELFCOMPRESS_ZLIB) {
    return Fail(ErrorCode::kUnsupported, "section compression {}", compressed.kind);
  }
  RETURN_IF_ERROR(CheckRatio(compressed));
  return std::make_unique<InflatingSource>(elf.bytes(), compressed);
}

}  // namespace pyrometer
