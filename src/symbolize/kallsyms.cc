// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kallsyms.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace pyrometer {
namespace {

std::optional<uint64_t> ParseNumber(std::string_view digits, int base) {
  if (base == 16 && digits.starts_with("0x")) digits.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, base);
  if (error != std::errc() || end != digits.end()) return std::nullopt;
  return value;
}

// Takes the text up to the next blank off the front of `rest`.
std::string_view TakeField(std::string_view& rest) {
  constexpr std::string_view kBlanks = " \t";
  const size_t end = std::min(rest.find_first_of(kBlanks), rest.size());
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks, end), rest.size()));
  return field;
}

}  // namespace

std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line) {
  const std::optional<uint64_t> address = ParseNumber(TakeField(line), 16);
  const std::string_view type = TakeField(line);
  const std::string_view name = TakeField(line);
  if (!address || type.size() != 1 || name.empty()) return std::nullopt;
  if (name.find('\0') != std::string_view::npos) return std::nullopt;
  if (line.starts_with('[') && line.ends_with(']')) {
    line.remove_prefix(1);
    line.remove_suffix(1);
  } else if (!line.empty()) {
    return std::nullopt;
  }
  return KallsymsLine{.address = *address, .type = type[0], .name = name, .module = line};
}

// "nf_tables 372736 2 nft_ct,nft_log, Live 0xffffffffc0a00000 (OE)"
std::vector<KernelModule> ParseModules(std::string_view modules) {
  std::vector<KernelModule> parsed;
  while (!modules.empty()) {
    const size_t newline = std::min(modules.find('\n'), modules.size());
    std::string_view line = modules.substr(0, newline);
    modules.remove_prefix(std::min(newline + 1, modules.size()));
    std::array<std::string_view, 6> fields;
    for (std::string_view& field : fields) field = TakeField(line);
    const std::optional<uint64_t> size = ParseNumber(fields[1], 10);
    const std::optional<uint64_t> address = ParseNumber(fields[5], 16);
    if (size && address && *address != 0 && *size <= ~*address) {
      parsed.push_back(
          {.name = std::string(fields[0]), .start = *address, .end = *address + *size});
    }
  }
  return parsed;
}

}  // namespace pyrometer
