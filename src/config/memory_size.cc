// SPDX-License-Identifier: Apache-2.0
#include "config/memory_size.h"

#include <charconv>
#include <cstdint>

namespace pyrometer {

Result<size_t> ParseUnwindMemory(std::string_view text) {
  std::string_view digits = text;
  for (const std::string_view unit : {"MiB", "M"}) {
    if (digits.ends_with(unit)) digits.remove_suffix(unit.size());
  }
  uint32_t mebibytes = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, mebibytes);
  if (error != std::errc() || end != last || mebibytes < 1 || mebibytes > kMostUnwindMemory >> 20) {
    return Fail(ErrorCode::kInvalid,
                "'{}' is not a valid memory size for unwind tables; give 1 to {} MiB", text,
                kMostUnwindMemory >> 20);
  }
  return size_t{mebibytes} << 20;
}

}  // namespace pyrometer
