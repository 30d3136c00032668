// SPDX-License-Identifier: Apache-2.0
#include "base/perf_paranoia.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace pyrometer {

std::optional<int64_t> ReadPerfParanoia(const Procfs& procfs) {
  const Result<std::string> file = ReadFile(procfs.root + "/sys/kernel/perf_event_paranoid", 64);
  if (!file) return std::nullopt;
  const std::string_view text = Trim(*file);
  int64_t level = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return level;
}

}  // namespace pyrometer
