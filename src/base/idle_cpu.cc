// SPDX-License-Identifier: Apache-2.0
#include "base/idle_cpu.h"

#include <charconv>
#include <string>
#include <system_error>
#include <thread>

#include "base/file.h"

namespace pyrometer {

// "0.20 0.18 0.12 1/80 11206"
std::optional<uint64_t> RunningTasksIn(std::string_view loadavg) {
  const size_t slash = loadavg.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view before = loadavg.substr(0, slash);
  const std::string_view number = before.substr(before.rfind(' ') + 1);  // npos + 1 is 0
  uint64_t running = 0;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), running);
  if (error != std::errc() || end != number.end()) return std::nullopt;
  return running;
}

bool HasIdleCpu() {
  const Result<std::string> loadavg = ReadFile("/proc/loadavg");
  const std::optional<uint64_t> running = loadavg ? RunningTasksIn(*loadavg) : std::nullopt;
  return running && *running < std::thread::hardware_concurrency();
}

}  // namespace pyrometer
