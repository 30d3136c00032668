// SPDX-License-Identifier: Apache-2.0
#include "symbolize/better_name.h"

#include <algorithm>
#include <tuple>

namespace pyrometer {
namespace {

size_t LeadingUnderscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

}  // namespace

bool BetterName(std::string_view a, std::string_view b) {
  return std::tuple(LeadingUnderscores(a), a.size(), a) <
         std::tuple(LeadingUnderscores(b), b.size(), b);
}

}  // namespace pyrometer
