// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "pyrometer/result.h"

namespace pyrometer {

// The bytes of a file or of memory, read in pieces. Any number of threads may read at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual uint64_t size() const = 0;

  // Reads exactly out.size() bytes at `offset`. Errors: kMalformed if the source ends before; kIo.
  virtual Result<void> Read(uint64_t offset, std::span<std::byte> out) const = 0;

  // All bytes, if they are in memory anyway; else none. Valid as long as the source.
  virtual std::span<const std::byte> in_memory() const { return {}; }
};

// The regular file behind `fd`, which stays the caller's and must stay open while the source is
// used. Read with pread and never mapped: a file that shrinks meanwhile is an error, not a SIGBUS.
Result<std::unique_ptr<ByteSource>> FileBytes(int fd);

// The same, of a file that is known to be regular and of `size` bytes: nothing is asked of it.
std::unique_ptr<ByteSource> FileBytes(int fd, uint64_t size);

std::unique_ptr<ByteSource> MemoryBytes(std::vector<std::byte> bytes);

// True if [offset, offset + size) lies within [0, limit). Cannot overflow.
constexpr bool Within(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

// Reads the bytes at `offset` as a T.
template <typename T>
Result<T> ReadObject(const ByteSource& source, uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T object;
  RETURN_IF_ERROR(source.Read(offset, std::as_writable_bytes(std::span(&object, 1))));
  return object;
}

// Reads `count` of them. Allocates nothing if the source is too small to hold them.
template <typename T>
Result<std::vector<T>> ReadArray(const ByteSource& source, uint64_t offset, uint64_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > source.size() || count > (source.size() - offset) / sizeof(T)) {
    return Fail(ErrorCode::kMalformed,
                "{} items of {} bytes at offset {:#x} do not fit into {} bytes", count, sizeof(T),
                offset, source.size());
  }
  std::vector<T> items(count);
  RETURN_IF_ERROR(source.Read(offset, std::as_writable_bytes(std::span(items))));
  return items;
}

// Reads a range of a source in large steps, for callers that read it more or less in order.
class ReadAhead {
 public:
  static constexpr size_t kDefaultStep = size_t{64} << 10;

  // Reads [begin, end) of `source`, or what there is of it. `source` must outlive this.
  ReadAhead(const ByteSource& source, uint64_t begin, uint64_t end, size_t step = kDefaultStep);

  // Returns `wanted` bytes at `offset`, fewer only at the end of the range. Valid until the next
  // call.
  Result<std::span<const std::byte>> At(uint64_t offset, size_t wanted);

 private:
  const ByteSource& source_;
  uint64_t begin_;
  uint64_t end_;
  size_t step_;
  uint64_t buffered_at_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace pyrometer
