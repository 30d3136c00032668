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

namespace {

// The sum over all CPUs of a number in a per-CPU array.
Result<uint64_t> SumOfCpus(int map_fd, uint32_t key) {
  std::vector<uint64_t> by_cpu(static_cast<size_t>(std::max(libbpf_num_possible_cpus(), 1)));
  if (bpf_map_lookup_elem(map_fd, &key, by_cpu.data()) != 0) {
    return SystemError(errno, "reading the counters of ticks");
  }
  return std::accumulate(by_cpu.begin(), by_cpu.end(), uint64_t{0});
}

}  // namespace

Result<Accounting> OutcomeCounts::OfHalf(uint32_t half) const {
  std::array<uint64_t, PYRO_OUTCOMES> runs{};
  for (uint32_t outcome = 0; outcome < PYRO_OUTCOMES; ++outcome) {
    ASSIGN_OR_RETURN(runs[outcome], SumOfCpus(outcomes_fd_, half * PYRO_OUTCOMES + outcome));
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

Result<std::chrono::nanoseconds> OutcomeCounts::Time() const {
  ASSIGN_OR_RETURN(const uint64_t sum, SumOfCpus(time_fd_, 0));
  return std::chrono::nanoseconds(sum);
}

}  // namespace pyrometer
