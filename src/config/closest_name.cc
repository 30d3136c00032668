// SPDX-License-Identifier: Apache-2.0
#include "config/closest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace pyrometer {
namespace {

constexpr size_t kLongestName = 64;  // of any key; also bounds the work

// How many letters have to be changed, added or removed (Levenshtein, by rows).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> ClosestName(std::string_view typed, std::span<const std::string> names) {
  if (typed.empty() || typed.size() > kLongestName) return std::nullopt;
  const std::string* closest = nullptr;
  size_t least = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = Distance(typed, name);
    // "url" is no misspelt "tls".
    if (distance >= least || distance * 2 > name.size()) continue;
    least = distance;
    closest = &name;
  }
  return closest == nullptr ? std::nullopt : std::optional<std::string>(*closest);
}

}  // namespace pyrometer
