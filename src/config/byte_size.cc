// SPDX-License-Identifier: Apache-2.0
#include "config/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace pyrometer {
namespace {

constexpr std::array<std::string_view, 4> kPrefixes = {"k", "M", "G", "T"};

uint64_t Power(uint64_t base, size_t exponent) {
  return exponent == 0 ? 1 : base * Power(base, exponent - 1);
}

// Bytes in one `unit`.
std::optional<uint64_t> UnitSize(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  for (size_t i = 0; i < kPrefixes.size(); ++i) {
    const bool is_kilo = i == 0 && unit[0] == 'K';
    if (!unit.starts_with(kPrefixes[i]) && !is_kilo) continue;
    const std::string_view rest = unit.substr(1);
    if (rest.empty() || rest == "i" || rest == "iB") return Power(1024, i + 1);
    if (rest == "B") return Power(1000, i + 1);
  }
  return std::nullopt;
}

Error NotASize(std::string_view text) {
  return Fail(ErrorCode::kInvalid, "'{}' is not a size; write it like 512MiB, 1GiB or 64k", text);
}

}  // namespace

Result<uint64_t> ParseByteSize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<uint64_t> unit = UnitSize(text.substr(digits));
  const char* const last = text.data() + digits;
  uint64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), last, whole);
  double value = 0;  // of a size with a fraction, which needs no more than 53 bits
  const auto [value_end, value_error] =
      std::from_chars(text.data(), last, value, std::chars_format::fixed);
  if (!unit || value_error != std::errc() || value_end != last) return NotASize(text);
  const double bytes = value * static_cast<double>(*unit);
  if (bytes > static_cast<double>(kLargestByteSize)) {
    return Fail(ErrorCode::kInvalid, "a size of {} is too large; the largest is {}", text,
                FormatByteSize(kLargestByteSize));
  }
  const bool is_whole = error == std::errc() && end == last;
  return is_whole ? whole * *unit : static_cast<uint64_t>(bytes);
}

std::string FormatByteSize(uint64_t bytes) {
  for (size_t i = kPrefixes.size(); i > 0; --i) {
    const uint64_t unit = Power(1024, i);
    if (bytes != 0 && bytes % unit == 0) {
      return fmt::format("{}{}iB", bytes / unit, i == 1 ? "K" : kPrefixes[i - 1]);
    }
  }
  return fmt::format("{}", bytes);
}

}  // namespace pyrometer
