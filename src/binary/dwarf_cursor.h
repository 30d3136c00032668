// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace pyrometer {

// Reads DWARF numbers from hostile bytes. What lies beyond the end, or does not fit into 64 bits,
// reads as 0; from then on ok() is false and the cursor is at its end.
class DwarfCursor {
 public:
  DwarfCursor() = default;
  explicit DwarfCursor(std::span<const std::byte> bytes, size_t position = 0)
      : begin_(bytes.data()), at_(begin_ + position), end_(begin_ + bytes.size()) {
    if (position > bytes.size()) Fail();
  }

  bool ok() const { return ok_; }
  bool AtEnd() const { return at_ == end_; }
  size_t position() const { return static_cast<size_t>(at_ - begin_); }
  size_t remaining() const { return static_cast<size_t>(end_ - at_); }

  template <typename T>
  T Fixed() {
    static_assert(std::is_integral_v<T>);
    T value = 0;
    if (remaining() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t Uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ != end_ && shift <= kLastShift; shift += 7) {
      const auto byte = std::to_integer<uint64_t>(*at_++);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) != 0) continue;
      if (shift == kLastShift && byte > 1) break;
      return value;
    }
    Fail();
    return 0;
  }

  // Of any length.
  void SkipLeb() {
    while (at_ != end_) {
      if ((std::to_integer<unsigned>(*at_++) & 0x80) == 0) return;
    }
    Fail();
  }

  int64_t Sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ != end_ && shift <= kLastShift; shift += 7) {
      const auto byte = std::to_integer<uint64_t>(*at_++);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) != 0) continue;
      if (shift == kLastShift && byte != 0 && byte != 0x7f) break;
      if (shift < kLastShift - 6 && (byte & 0x40) != 0) value |= ~uint64_t{0} << (shift + 7);
      return static_cast<int64_t>(value);
    }
    Fail();
    return 0;
  }

  std::span<const std::byte> Bytes(uint64_t size) {
    if (size > remaining()) {
      Fail();
      return {};
    }
    const std::span<const std::byte> bytes(at_, size);
    at_ += size;
    return bytes;
  }

  // Up to the next NUL, which is read as well and must be among the next `limit` bytes.
  std::string_view String(size_t limit) {
    const auto* const text = reinterpret_cast<const char*>(at_);
    const size_t available = std::min(remaining(), limit);
    const size_t length = available == 0 ? 0 : ::strnlen(text, available);
    if (length == available) {
      Fail();
      return {};
    }
    at_ += length + 1;
    return {text, length};
  }

 private:
  static constexpr unsigned kLastShift = 63;  // of the tenth byte, of which one bit has room

  void Fail() {
    ok_ = false;
    at_ = end_;
  }

  const std::byte* begin_ = nullptr;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  bool ok_ = true;
};

}  // namespace pyrometer
