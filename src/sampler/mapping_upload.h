// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Free ranges of the mapping pool, first fit.
class FreeRanges {
 public:
  explicit FreeRanges(uint32_t size) { ranges_.emplace(0, size); }

  // First index of `count` consecutive free entries; nothing if there are none.
  std::optional<uint32_t> Take(uint32_t count);
  void GiveBack(uint32_t first, uint32_t count);

 private:
  std::map<uint32_t, uint32_t> ranges_;  // first -> count; neighbours are merged
};

// The user-space side of the maps `mapping_pool` and `processes`.
//
// Equal mapping arrays (a parent and its children) share one region of the pool. A region that
// nobody refers to any more is reused only after kQuarantine: the kernel side may be reading it
// still, or may have copied a reference to it at a fork of which we shall only hear.
//
// Owned by the thread that tracks processes.
class MappingUpload {
 public:
  // Bounds the time a fork record may be under way to us.
  static constexpr std::chrono::seconds kQuarantine{10};

  // `pool`: the map's memory. `processes_fd`: the map of pyro_process by pid.
  MappingUpload(std::span<pyro_mapping> pool, int processes_fd)
      : pool_(pool), processes_fd_(processes_fd), free_(static_cast<uint32_t>(pool.size())) {}

  // False if the pool or the process map is full: the process is unknown to the kernel then.
  bool Publish(const ProcessKey& process, ExecId exec, std::span<const ObjectMapping> mappings,
               MonotonicTime now);
  void Withdraw(Pid pid, MonotonicTime now);

 private:
  struct Region {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t references = 0;
    uint64_t hash = 0;
  };
  struct Retired {
    MonotonicTime when;
    uint32_t first = 0;
    uint32_t count = 0;
  };
  using RegionId = uint32_t;

  std::optional<RegionId> FindOrWrite(std::span<const ObjectMapping> mappings);
  bool Holds(const Region& region, std::span<const ObjectMapping> mappings) const;
  void Drop(RegionId id, MonotonicTime now);
  void Reuse(MonotonicTime now);

  std::span<pyro_mapping> pool_;
  int processes_fd_;
  FreeRanges free_;
  RegionId next_id_ = 1;
  absl::flat_hash_map<RegionId, Region> regions_;
  absl::flat_hash_map<uint64_t, RegionId> by_hash_;
  absl::flat_hash_map<Pid, RegionId> of_process_;
  std::deque<Retired> retired_;
};

}  // namespace pyrometer
