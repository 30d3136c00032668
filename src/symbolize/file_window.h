// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// Looks at pieces of a file, of which it reads what lies near by as well.
class FileWindow {
 public:
  static constexpr size_t kStep = 4096;

  // Counts what it reads in `read`, which must outlive it.
  FileWindow(int fd, uint64_t end, uint64_t& read) : fd_(fd), end_(end), read_(read) {}

  // Bytes from `offset` on, `size` of them, or fewer where the file ends. Valid until the next
  // call. REQUIRES: size <= 2 * kStep. Errors: kIo.
  Result<std::string_view> At(uint64_t offset, size_t size);

  // None if the file ends before it does.
  template <typename T>
  Result<std::optional<T>> Get(uint64_t offset) {
    ASSIGN_OR_RETURN(const std::string_view bytes, At(offset, sizeof(T)));
    if (bytes.size() < sizeof(T)) return std::optional<T>();
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return std::optional<T>(value);
  }

 private:
  Result<void> Fill(uint64_t offset, size_t size);

  const int fd_;
  const uint64_t end_;
  uint64_t& read_;
  std::array<char, 3 * kStep> bytes_{};
  uint64_t begin_ = 0;
  size_t size_ = 0;
};

}  // namespace pyrometer
