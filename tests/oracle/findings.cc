// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>

namespace pyrometer::oracle {
namespace {

constexpr size_t kPlacesShown = 8;

void ReportReason(std::string& text, const std::string& reason,
                  const std::map<std::string, uint64_t>& places) {
  uint64_t total = 0;
  std::vector<std::pair<uint64_t, std::string>> ordered;
  for (const auto& [place, count] : places) {
    ordered.emplace_back(count, place);
    total += count;
  }
  std::ranges::sort(ordered, std::greater());
  fmt::format_to(std::back_inserter(text), "  {} x {}\n", total, reason);
  for (size_t i = 0; i < std::min(ordered.size(), kPlacesShown); ++i) {
    fmt::format_to(std::back_inserter(text), "    {:8} {}\n", ordered[i].first, ordered[i].second);
  }
  if (ordered.size() > kPlacesShown) {
    fmt::format_to(std::back_inserter(text), "    and {} more places\n",
                   ordered.size() - kPlacesShown);
  }
}

}  // namespace

std::string Report(std::string_view title, const Findings& findings) {
  std::string text = fmt::format(
      "{}: {} instructions, {} checks: {} exact ({:.4f} %), {} cut early, {} with "
      "an unsure end, {} WRONG; {} ahead of a jump, {} not judged while frames are left",
      title, findings.instructions, findings.checks(), findings.exact, findings.ExactPercent(),
      findings.cut, findings.unsure_end, findings.wrong, findings.ahead, findings.leaving);
  if (findings.trusted > 0) {
    fmt::format_to(std::back_inserter(text), "; {} frames on trust, {} of them returned to",
                   findings.trusted, findings.returned);
  }
  text += '\n';
  for (const auto& [reason, places] : findings.early) ReportReason(text, reason, places);
  for (const std::string& example : findings.examples) text += example;
  return text;
}

}  // namespace pyrometer::oracle
