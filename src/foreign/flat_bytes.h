// SPDX-License-Identifier: Apache-2.0
// Values as bytes, for a process of the same program on the same machine.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace pyrometer {

// Numbers, enumerations and plain structures without padding, and vectors of them.
template <typename T>
concept Flat = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

class FlatWriter {
 public:
  template <Flat T>
  void Put(const T& value) {
    PutBytes(std::as_bytes(std::span(&value, 1)));
  }
  // Their number, then the elements.
  template <Flat T>
  void PutAll(std::span<const T> values) {
    Put(uint64_t{values.size()});
    PutBytes(std::as_bytes(values));
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void PutBytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  std::vector<std::byte> bytes_;
};

// What a FlatWriter wrote, or anybody who lies: what does not fit is zero or empty from there on,
// and ok() tells.
class FlatReader {
 public:
  explicit FlatReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <Flat T>
  T Get() {
    T value{};
    GetBytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // At most `most` elements. REQUIRES: any bytes are a value of T.
  template <Flat T>
  std::vector<T> GetAll(size_t most) {
    const auto count = Get<uint64_t>();
    std::vector<T> values;
    if (count > most || count > rest_.size() / sizeof(T)) return Fail(), values;
    values.resize(count);
    GetBytes(std::as_writable_bytes(std::span(values)));
    return values;
  }

  // The same of bytes, where they lie.
  std::span<const std::byte> View(size_t most) {
    const auto size = Get<uint64_t>();
    if (size > most || size > rest_.size()) return Fail(), rest_;
    const std::span<const std::byte> bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }

  // False: something did not fit.
  bool ok() const { return ok_; }
  // Nothing is left, and all that was read fitted.
  bool ended() const { return ok_ && rest_.empty(); }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

 private:
  void GetBytes(std::span<std::byte> out) {
    if (out.size() > rest_.size()) return Fail();
    if (!out.empty()) std::memcpy(out.data(), rest_.data(), out.size());
    rest_ = rest_.subspan(out.size());
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace pyrometer
