// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace pyrometer {

// Writes the numbers of DWARF.
class DwarfBytes {
 public:
  DwarfBytes() = default;
  DwarfBytes(std::initializer_list<int> bytes) {
    for (const int b : bytes) U8(b);
  }

  template <typename T>
  DwarfBytes& Fixed(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(value));
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
    return *this;
  }
  DwarfBytes& U8(uint64_t value) { return Fixed(static_cast<uint8_t>(value)); }
  DwarfBytes& U16(uint64_t value) { return Fixed(static_cast<uint16_t>(value)); }
  DwarfBytes& U32(uint64_t value) { return Fixed(static_cast<uint32_t>(value)); }
  DwarfBytes& U64(uint64_t value) { return Fixed(value); }

  DwarfBytes& Uleb(uint64_t value) {
    for (; value >= 0x80; value >>= 7) U8(value | 0x80);
    return U8(value);
  }
  DwarfBytes& Sleb(int64_t value) {
    for (; value < -0x40 || value >= 0x40; value >>= 7) {
      U8(static_cast<uint64_t>(value) | 0x80);
    }
    return U8(static_cast<uint64_t>(value) & 0x7f);
  }
  DwarfBytes& String(std::string_view text) {
    for (const char c : text) U8(static_cast<uint8_t>(c));
    return U8(0);
  }
  DwarfBytes& Append(const DwarfBytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  // ULEB128 length, then the bytes: expressions, augmentation data.
  DwarfBytes& Block(const DwarfBytes& other) { return Uleb(other.size()).Append(other); }

  size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace pyrometer
