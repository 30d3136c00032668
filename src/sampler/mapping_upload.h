// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/free_ranges.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "sampler/table_upload.h"

namespace pyrometer {

// The user-space side of the maps `mapping_pool` and `processes`.
//
// Equal mapping arrays (a parent and its children) share one region of the pool. An unreferenced
// region is reused only after kForkQuarantine: the kernel side may still be reading it, or may have
// copied a reference to it at a fork that has not been reported yet. Until then it also holds the
// tables of its objects.
//
// One call at a time; counters(): any thread.
class MappingUpload {
 public:
  struct Counters {
    uint64_t mappings = 0;   // in the pool now, including unreferenced ones
    uint64_t room = 0;       // mappings that the pool can hold
    uint64_t processes = 0;  // whose mappings the kernel side knows now
    uint64_t refused = 0;    // processes that did not fit, since the beginning
  };

  // `pool` is the map's memory, `processes_fd` the map of pyro_process by pid. `tables` must
  // outlive this.
  MappingUpload(std::span<pyro_mapping> pool, int processes_fd, TableUpload& tables)
      : pool_(pool),
        processes_fd_(processes_fd),
        tables_(tables),
        free_(static_cast<uint32_t>(pool.size())) {}

  // `exec_pages`: see pyro_process. False if the pool or the process map is full; the process is
  // then unknown to the kernel side.
  bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
               std::span<const PublishedMapping> mappings, MonotonicTime now);
  void Withdraw(Pid pid, MonotonicTime now);

  // Releases what was withdrawn or replaced longer ago than kForkQuarantine. Publish() does so too.
  void ReleaseWithdrawn(MonotonicTime now);

  Counters counters() const;

 private:
  struct Region {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t references = 0;
    uint64_t hash = 0;
    std::vector<ObjectId> objects;  // whose tables it holds
  };
  struct Retired {
    MonotonicTime when;
    Region region;
  };
  using RegionId = uint32_t;

  std::optional<RegionId> FindOrWrite(std::span<const PublishedMapping> mappings,
                                      MonotonicTime now);
  std::vector<ObjectId> HoldTables(std::span<pyro_mapping> mappings, MonotonicTime now);
  bool Holds(const Region& region, std::span<const PublishedMapping> mappings) const;
  void Drop(RegionId id, MonotonicTime now);

  std::span<pyro_mapping> pool_;
  int processes_fd_;
  TableUpload& tables_;
  FreeRanges free_;
  RegionId next_id_ = 1;
  absl::flat_hash_map<RegionId, Region> regions_;
  absl::flat_hash_map<uint64_t, RegionId> by_hash_;
  absl::flat_hash_map<Pid, RegionId> of_process_;
  std::deque<Retired> retired_;
  std::atomic<uint64_t> mappings_ = 0;
  std::atomic<uint64_t> known_processes_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace pyrometer
