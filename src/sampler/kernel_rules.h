// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/abi/unwind.h"
#include "pyrometer/ids.h"
#include "pyrometer/unwind_rule_bits.h"

namespace pyrometer {

// The rules of all tables in the kernel. Each distinct rule is stored once, as long as a table uses
// it. When there is no room, a new rule becomes PYRO_RULE_INDEX_EXOTIC: user space unwinds what
// needs it, correctly. All 2,501 ELF files of a Debian machine have some 4,000 rules.
class KernelRules {
 public:
  // `rules`: the map's memory.
  explicit KernelRules(std::span<pyro_unwind_rule> rules);

  // The numbers of a table's rules, in their order. Each is held until Release().
  std::vector<uint16_t> Acquire(std::span<const pyro_unwind_rule> rules, MonotonicTime now);
  void Release(std::span<const uint16_t> indices, MonotonicTime now);

  size_t size() const { return index_of_.size(); }
  // Rules that did not fit.
  uint64_t refused() const { return refused_; }

 private:
  struct Retired {
    MonotonicTime when;
    uint16_t index = 0;
  };

  uint16_t AcquireOne(const pyro_unwind_rule& rule, MonotonicTime now);

  std::span<pyro_unwind_rule> rules_;
  std::vector<uint32_t> references_;  // by index
  absl::flat_hash_map<UnwindRuleBits, uint16_t> index_of_;
  std::deque<Retired> retired_;  // free once no program can be reading them
  uint32_t next_ = 0;            // the first index never used
  uint64_t refused_ = 0;
};

}  // namespace pyrometer
