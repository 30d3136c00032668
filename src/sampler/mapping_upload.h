// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "sampler/pool_room.h"
#include "sampler/table_upload.h"

namespace pyrometer {

// The user-space side of the maps `mapping_pool` and `processes`.
//
// Equal mapping arrays (a parent and its children) share one region of the pool. A region that no
// known process refers to stays valid for kIdleMappings. Then its generation ends, so that no
// reference leads to it any more, and its memory is used again when no program can be reading it:
// after kReaderQuarantine.
//
// Without room idle regions end at once, then those of processes that no tick has used lately, and
// AwaitRoom() asks the kernel to wait for its readers. Processes that have no place meanwhile, or
// lost it, are unknown to the kernel side until TakeMissed() and another Publish().
//
// One call at a time; but AwaitRoom() beside others, and counters() on any thread.
class MappingUpload {
 public:
  struct Counters {
    uint64_t mappings = 0;   // room of the pool that is taken now, by idle regions as well
    uint64_t room = 0;       // of the pool
    uint64_t processes = 0;  // whose mappings the kernel side knows now
    uint64_t unplaced = 0;   // whose mappings it does not know now for lack of room
    uint64_t refused = 0;    // times that a process found no room, since the beginning
    uint64_t evicted = 0;    // processes that made room for others, likewise
    uint64_t swept = 0;      // entries of processes whose ends went unnoticed, likewise
  };
  // `pool` is the map's memory, in parts of PYRO_POOL_PART; `processes_fd` the map of pyro_process
  // by pid. `tables` must outlive this.
  MappingUpload(std::span<pyro_mapping> pool, int processes_fd, TableUpload& tables,
                PoolRoom::WaitForReaders wait_for_readers)
      : pool_(pool),
        processes_fd_(processes_fd),
        tables_(tables),
        room_(pool.size(), std::move(wait_for_readers)) {}

  // `exec_pages`: see pyro_process. False if there is no room in the pool or the process map.
  bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
               std::span<const PublishedMapping> mappings, MonotonicTime now);
  void Withdraw(Pid pid, MonotonicTime now);

  // Takes back what has been idle for long enough. Publish() does so too.
  void ReleaseWithdrawn(MonotonicTime now);

  // Withdraws all processes but these, those included that inherited an entry and were never
  // published.
  void Sweep(std::span<const Pid> living, MonotonicTime now);

  // Processes that should be published again: those for which AwaitRoom() made room, and those that
  // ticks have found without their mappings, each of these at most every kRetryInterval. At most
  // kMostRetries of them.
  std::vector<Pid> TakeMissed(MonotonicTime now);

  // Objects in whose mappings ticks may have been, each once as long as its table is held: such as
  // are mapped where ticks were, and whose tables were used.
  std::vector<ObjectId> TakeUsed();

  // If a process found no room that mappings taken back before would have left, waits until no
  // program can be reading those. False if nobody needs it, or too early after the last time.
  bool AwaitRoom(MonotonicTime now);

  Counters counters() const;

  static constexpr std::chrono::seconds kRetryInterval{1};
  static constexpr size_t kMostRetries = 64;
  // The least time between two waits for readers, and between two looks at what ticks use.
  static constexpr std::chrono::milliseconds kWaitInterval{100};
  static constexpr std::chrono::seconds kEvictionInterval{1};

 private:
  struct HeldTable {
    ObjectId object;
    uint32_t slot = 0;
  };
  struct Region {
    uint32_t first = 0;  // of the pool: its head
    uint32_t slots = 0;
    uint32_t count = 0;  // mappings
    uint32_t references = 0;
    uint64_t hash = 0;
    MonotonicTime placed;  // published for a process the last time
    MonotonicTime idle_since;
    std::vector<HeldTable> held;
    std::vector<HeldTable>
        unseen;  // of held: of objects in which no tick was yet, as far as is known
  };
  struct NoRoom {
    uint64_t room_after = 0;  // some comes when PoolRoom::unread() is as much; 0: waiting helps not
  };
  struct Unplaced {
    MonotonicTime not_before;  // it is tried again
    uint64_t room_after = 0;   // sooner then, see NoRoom
  };
  using RegionId = uint64_t;
  struct Idle {
    MonotonicTime since;
    RegionId region = 0;
  };

  tl::expected<RegionId, NoRoom> FindOrWrite(std::span<const PublishedMapping> mappings,
                                             MonotonicTime now);
  tl::expected<uint32_t, NoRoom> TakeRoom(uint32_t slots, MonotonicTime now);
  std::vector<HeldTable> HoldTables(std::span<pyro_mapping> mappings, MonotonicTime now);
  bool Holds(const Region& region, std::span<const PublishedMapping> mappings) const;
  bool SetEntry(Pid pid, const pyro_process& entry, MonotonicTime now);
  void LeaveUnplaced(Pid pid, pyro_process entry, NoRoom reason, MonotonicTime now);
  void Forget(Pid pid, MonotonicTime now);
  void Drop(RegionId id, MonotonicTime now);
  void Retire(RegionId id, MonotonicTime now);
  void RetireIdle(MonotonicTime now, std::chrono::nanoseconds after);
  std::vector<Pid> Evict(uint32_t slots, MonotonicTime now);
  std::vector<RegionId> Unused(uint32_t slots, MonotonicTime now);
  void UpdateCounts();

  std::atomic_ref<uint32_t> GenerationOf(const Region& region) const {
    return std::atomic_ref(pool_[region.first].table);
  }
  std::atomic_ref<uint32_t> UsedOf(const Region& region) const {
    return std::atomic_ref(pool_[region.first].object);
  }

  std::span<pyro_mapping> pool_;
  int processes_fd_;
  TableUpload& tables_;
  PoolRoom room_;
  RegionId next_id_ = 1;
  absl::flat_hash_map<RegionId, Region> regions_;
  absl::flat_hash_map<uint64_t, RegionId> by_hash_;
  absl::flat_hash_map<Pid, RegionId> of_process_;
  absl::flat_hash_map<Pid, Unplaced> unplaced_;
  std::deque<Idle> idle_;                 // regions that had no references then; some have by now
  std::atomic<bool> lacks_room_ = false;  // somebody does since the last wait, whom one helps
  MonotonicTime next_wait_;               // AwaitRoom()'s
  MonotonicTime next_eviction_;
  std::atomic<uint64_t> known_processes_ = 0;
  std::atomic<uint64_t> unplaced_processes_ = 0;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<uint64_t> evicted_ = 0;
  std::atomic<uint64_t> swept_ = 0;
};

}  // namespace pyrometer
