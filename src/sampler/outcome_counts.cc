// SPDX-License-Identifier: Apache-2.0
#include "sampler/outcome_counts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <vector>

#include "base/system_error.h"
#include "pyrometer/abi/sampler.h"

namespace pyrometer {

Result<Accounting> OutcomeCounts::OfHalf(uint32_t half) const {
  std::array<uint64_t, PYRO_OUTCOMES> runs{};
  std::vector<uint64_t> by_cpu(static_cast<size_t>(std::max(libbpf_num_possible_cpus(), 1)));
  for (uint32_t outcome = 0; outcome < PYRO_OUTCOMES; ++outcome) {
    const uint32_t key = half * PYRO_OUTCOMES + outcome;
    if (bpf_map_lookup_elem(map_fd_, &key, by_cpu.data()) != 0) {
      return SystemError(errno, "reading the outcomes of ticks");
    }
    runs[outcome] = std::accumulate(by_cpu.begin(), by_cpu.end(), uint64_t{0});
  }
  Accounting books;
  books.exported = runs[PYRO_OUTCOME_EXPORTED];
  books.idle = runs[PYRO_OUTCOME_IDLE];
  books.filtered = runs[PYRO_OUTCOME_FILTERED];
  books.lost[Accounting::kStackMapFull] = runs[PYRO_OUTCOME_LOST_STACK_MAP_FULL];
  books.lost[Accounting::kCountMapFull] = runs[PYRO_OUTCOME_LOST_COUNT_MAP_FULL];
  books.lost[Accounting::kNoMemory] = runs[PYRO_OUTCOME_LOST_NO_MEMORY];
  books.lost[Accounting::kMapBusy] = runs[PYRO_OUTCOME_LOST_MAP_BUSY];
  books.lost[Accounting::kInternal] = runs[PYRO_OUTCOME_LOST_INTERNAL];
  return books;
}

}  // namespace pyrometer
