// SPDX-License-Identifier: Apache-2.0
#include "sampler/kernel_tables.h"

#include <utility>

namespace pyrometer {

Result<std::unique_ptr<KernelTables>> KernelTables::Open(const sampler_bpf& skeleton, size_t budget,
                                                         const Clock& clock) {
  const auto& maps = skeleton.maps;
  using Tables = MappedArray<pyro_object_table>;
  ASSIGN_OR_RETURN(Tables tables, Tables::Map(maps.object_tables, PYRO_MAX_TABLES));
  using Pages = MappedArray<pyro_table_page>;
  ASSIGN_OR_RETURN(Pages pages, Pages::Map(maps.table_pages, PYRO_MAX_TABLE_PAGES));
  using Rules = MappedArray<pyro_unwind_rule>;
  ASSIGN_OR_RETURN(Rules rules, Rules::Map(maps.unwind_rules, PYRO_MAX_RULES));
  ASSIGN_OR_RETURN(Wakeup wakeup, Wakeup::Open());
  return std::unique_ptr<KernelTables>(
      new KernelTables({std::move(tables), std::move(pages), std::move(rules)}, skeleton, budget,
                       std::move(wakeup), clock));
}

KernelTables::KernelTables(Memory memory, const sampler_bpf& skeleton, size_t budget, Wakeup wakeup,
                           const Clock& clock)
    : memory_(std::move(memory)),
      chunks_(bpf_map__fd(skeleton.maps.chunks)),
      upload_({memory_.tables.entries(), memory_.pages.entries(), memory_.rules.entries(),
               skeleton.bss->table_generation},
              chunks_, budget / sizeof(pyro_unwind_chunk)),
      wakeup_(std::move(wakeup)),
      clock_(clock) {}

std::vector<ObjectId> KernelTables::TakeWanted() {
  return upload_.TakeWanted(clock_.Now());
}

bool KernelTables::Load(ObjectId object, const UnwindTable& table) {
  return upload_.Load(object, table, clock_.Now());
}

}  // namespace pyrometer
