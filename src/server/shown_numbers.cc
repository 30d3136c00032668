// SPDX-License-Identifier: Apache-2.0
#include "server/shown_numbers.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <string_view>

namespace pyrometer {
namespace {

std::string Format(std::chrono::system_clock::time_point time, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  std::array<char, 40> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "?";
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

// The larger unit, and the smaller one if there is something in it.
std::string TwoUnits(int64_t large, std::string_view unit, int64_t small,
                     std::string_view small_unit) {
  return small == 0 ? fmt::format("{} {}", large, unit)
                    : fmt::format("{} {} {} {}", large, unit, small, small_unit);
}

}  // namespace

std::string ShownCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string ShownShare(double share) {
  if (share > 0 && share < 0.001) return "under 0.1 %";
  return fmt::format("{:.1f} %", share * 100);
}

std::string ShownBytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be shown as 1024.0.
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string ShownDuration(std::chrono::nanoseconds time) {
  const double exact = std::chrono::duration<double>(time).count();
  if (exact < 59.95) return fmt::format("{:.1f} s", exact < 0 ? 0 : exact);
  const auto seconds = static_cast<int64_t>(std::round(exact));
  if (seconds < 3600) return TwoUnits(seconds / 60, "min", seconds % 60, "s");
  const int64_t minutes = seconds / 60;
  constexpr int64_t kDay = 1440;
  if (minutes < kDay) return TwoUnits(minutes / 60, "h", minutes % 60, "min");
  return TwoUnits(minutes / kDay, "d", minutes % kDay / 60, "h");
}

std::string ShownTime(std::chrono::system_clock::time_point time) {
  return Format(time, "%Y-%m-%d %H:%M:%S");
}

std::string MachineTime(std::chrono::system_clock::time_point time) {
  return Format(time, "%Y-%m-%dT%H:%M:%SZ");
}

}  // namespace pyrometer
