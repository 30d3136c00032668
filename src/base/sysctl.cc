// SPDX-License-Identifier: Apache-2.0
#include "base/sysctl.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace pyrometer {

std::optional<int64_t> ReadSysctl(const Procfs& procfs, std::string_view name) {
  const Result<std::string> file = ReadFile(fmt::format("{}/sys/{}", procfs.root, name));
  if (!file) return std::nullopt;
  const std::string_view text = Trim(*file);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace pyrometer
