// SPDX-License-Identifier: Apache-2.0
#include "pyrometer/unwind_table.h"

#include <algorithm>
#include <iterator>

namespace pyrometer {

const pyro_unwind_rule* UnwindTable::RuleAt(ElfAddress address) const {
  static constexpr pyro_unwind_rule kNone{};
  const uint64_t page = (address.value() >> PYRO_UNWIND_PAGE_SHIFT) - first_page;
  if (page >= pages.size() || pages[page].row_count == 0) return &kNone;
  std::vector<pyro_unwind_row> buffer;
  const std::span<const pyro_unwind_row> of_page = RowsOf(page, buffer);
  if (of_page.empty()) return nullptr;
  const auto low = static_cast<uint16_t>(address.value());
  const auto after = std::ranges::upper_bound(of_page, low, {}, &pyro_unwind_row::pc_low);
  if (after == of_page.begin()) return &kNone;
  return &rules[std::prev(after)->rule];
}

}  // namespace pyrometer
