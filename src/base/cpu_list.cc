// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_list.h"

#include <charconv>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr uint32_t kMaxCpu = 1 << 16;

bool ParseNumber(std::string_view text, uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out < kMaxCpu;
}

}  // namespace

Result<std::vector<uint32_t>> ParseCpuList(std::string_view text) {
  std::vector<uint32_t> cpus;
  for (const std::string_view range : Split(Trim(text), ',')) {
    if (range.empty()) continue;
    const std::vector<std::string_view> ends = Split(range, '-');
    uint32_t first = 0;
    uint32_t last = 0;
    if (ends.size() > 2 || !ParseNumber(ends.front(), first) || !ParseNumber(ends.back(), last) ||
        last < first) {
      return Fail(ErrorCode::kMalformed, "not a cpu list: '{}'", text);
    }
    for (uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

Result<std::vector<uint32_t>> OnlineCpus(const Procfs& procfs) {
  ASSIGN_OR_RETURN(const std::string list, ReadFile(procfs.sys + "/devices/system/cpu/online"));
  return ParseCpuList(list);
}

}  // namespace pyrometer
