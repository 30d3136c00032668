// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "pyrometer/abi/unwind.h"

namespace pyrometer {

// The memory of the maps in which the sampling program finds unwind tables, while it reads them.
struct TableMemory {
  std::span<pyro_object_table> tables;
  std::span<pyro_table_page> pages;
  std::span<pyro_unwind_rule> rules;
  uint32_t& generation;  // the programs forget what they know of tables when it changes

  // After all else of the table.
  void SetState(uint32_t slot, pyro_table_state state) const {
    std::atomic_ref<__u32>(tables[slot].state).store(state, std::memory_order_release);
  }

  // In one store: the sampling program reads it in one load.
  void SetPage(uint32_t index, const pyro_table_page& page) const {
    static_assert(sizeof(pyro_table_page) == sizeof(uint64_t));
    uint64_t bits = 0;
    std::memcpy(&bits, &page, sizeof(bits));
    auto* const at = reinterpret_cast<uint64_t*>(&pages[index]);
    std::atomic_ref<uint64_t>(*at).store(bits, std::memory_order_release);
  }

  void ForgetKnownRules() const {
    std::atomic_ref<uint32_t>(generation).fetch_add(1, std::memory_order_release);
  }
};

}  // namespace pyrometer
