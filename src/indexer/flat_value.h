// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "pyrometer/result.h"

namespace pyrometer {

// Only what has no padding, whose bytes would be anything.
template <typename T>
concept Flat = std::is_trivially_copyable_v<T>;

// Puts values together as bytes, for another process of the same program.
class FlatWriter {
 public:
  template <Flat T>
  void Put(const T& value) {
    Append(std::as_bytes(std::span(&value, 1)));
  }
  template <Flat T, size_t kExtent>
  void PutAll(std::span<T, kExtent> values) {
    Put<uint64_t>(values.size());
    Append(std::as_bytes(values));
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void Append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  std::vector<std::byte> bytes_;
};

// Takes them apart. The bytes may be anything: what lies beyond their end, and lists that are
// longer than the bytes, are read as nothing, and ok() is false from then on. A bool or an enum
// must be read as a number.
class FlatReader {
 public:
  explicit FlatReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <Flat T>
  T Get() {
    static_assert(!std::is_same_v<T, bool> && !std::is_enum_v<T>);
    T value{};
    if (rest_.size() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  template <Flat T>
  std::vector<T> GetAll(uint64_t most) {
    const auto count = Get<uint64_t>();
    if (count > most || count > rest_.size() / sizeof(T)) {
      Fail();
      return {};
    }
    std::vector<T> values(count);
    if (count != 0) std::memcpy(values.data(), rest_.data(), count * sizeof(T));
    rest_ = rest_.subspan(count * sizeof(T));
    return values;
  }

  bool ok() const { return ok_; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace pyrometer
