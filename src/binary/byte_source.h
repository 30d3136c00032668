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

  // Exactly out.size() bytes from `offset`; kMalformed if the source ends before.
  virtual Result<void> Read(uint64_t offset, std::span<std::byte> out) const = 0;
};

// The regular file behind `fd`, which stays the caller's and open as long as the source is used.
// Read with pread and never mapped: a file that shrinks under us is an error and not a SIGBUS.
Result<std::unique_ptr<ByteSource>> FileBytes(int fd);

std::unique_ptr<ByteSource> MemoryBytes(std::vector<std::byte> bytes);

// True if [offset, offset + size) lies within [0, limit). No sum that could overflow is made.
constexpr bool Within(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

// A plain object as it lies at `offset`.
template <typename T>
Result<T> ReadObject(const ByteSource& source, uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T object;
  RETURN_IF_ERROR(source.Read(offset, std::as_writable_bytes(std::span(&object, 1))));
  return object;
}

// `count` of them. Memory is only taken for what the source is large enough to hold.
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

// Reads a range of a source in large steps, for callers that go through it more or less in order.
class ReadAhead {
 public:
  static constexpr size_t kDefaultStep = size_t{64} << 10;

  // Of `source`, at most [begin, end); cut to what there is.
  ReadAhead(const ByteSource& source, uint64_t begin, uint64_t end, size_t step = kDefaultStep);

  // `wanted` bytes from `offset`, fewer only at the end of the range. Valid until the next call.
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
