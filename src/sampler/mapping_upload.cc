// SPDX-License-Identifier: Apache-2.0
#include "sampler/mapping_upload.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "base/clock.h"
#include "sampler/quarantine.h"

namespace pyrometer {
namespace {

uint64_t HashOf(std::span<const PublishedMapping> mappings) {
  uint64_t hash = mappings.size();
  for (const auto& [m, shifting] : mappings) {
    hash = absl::HashOf(hash, m.start, m.end, m.object, m.bias, shifting);
  }
  return hash;
}

// With the table still to be filled in.
pyro_mapping ToAbi(const PublishedMapping& published) {
  const ObjectMapping& m = published.mapping;
  return {.start = m.start.value(),
          .end = m.end.value(),
          .bias = m.bias,
          .object = m.object.value(),
          .table = published.shifting ? PYRO_MAPPING_SHIFTING : 0};
}

bool Equal(const pyro_mapping& a, const pyro_mapping& b) {
  return a.start == b.start && a.end == b.end && a.bias == b.bias && a.object == b.object &&
         (a.table & PYRO_MAPPING_SHIFTING) == (b.table & PYRO_MAPPING_SHIFTING);
}

}  // namespace

bool MappingUpload::Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
                            std::span<const PublishedMapping> mappings, MonotonicTime now) {
  ReleaseWithdrawn(now);
  if (mappings.empty()) {
    Withdraw(process.pid, now);
    return true;
  }
  pyro_process entry{
      .start_ticks = process.start_time.value(),
      .exec_id = exec.value(),
      .first_mapping = 0,
      .mapping_count = 0,
      .exec_pages = static_cast<uint32_t>(exec_pages.count),
      .exec_slack = static_cast<uint16_t>(std::min<uint64_t>(exec_pages.slack, UINT16_MAX)),
      .missed = 0,
      .generation = 0};
  const tl::expected<RegionId, NoRoom> id = FindOrWrite(mappings, now);
  if (!id) {
    LeaveUnplaced(process.pid, entry, id.error(), now);
    return false;
  }
  Region& region = regions_[*id];
  ++region.references;
  region.placed = now;
  entry.first_mapping = region.first + 1;
  entry.mapping_count = region.count;
  entry.generation = GenerationOf(region);
  if (!SetEntry(process.pid, entry, now)) {
    Drop(*id, now);
    LeaveUnplaced(process.pid, entry, NoRoom(), now);
    return false;
  }
  Forget(process.pid, now);
  of_process_[process.pid] = *id;
  UpdateCounts();
  return true;
}

// When the map is full, processes that no tick used lately go.
bool MappingUpload::SetEntry(Pid pid, const pyro_process& entry, MonotonicTime now) {
  const uint32_t key = pid.value();
  if (bpf_map_update_elem(processes_fd_, &key, &entry, BPF_ANY) == 0) return true;
  if (errno != E2BIG) return false;
  for (const Pid evicted : Evict(0, now)) {
    const uint32_t other = evicted.value();
    bpf_map_delete_elem(processes_fd_, &other);
  }
  return bpf_map_update_elem(processes_fd_, &key, &entry, BPF_ANY) == 0;
}

// With an entry that leads nowhere, where ticks say that they missed the process.
void MappingUpload::LeaveUnplaced(Pid pid, pyro_process entry, NoRoom reason, MonotonicTime now) {
  Forget(pid, now);
  entry.generation = 0;
  entry.mapping_count = 0;
  const uint32_t key = pid.value();
  if (bpf_map_update_elem(processes_fd_, &key, &entry, BPF_ANY) != 0) {
    bpf_map_delete_elem(processes_fd_, &key);
  }
  unplaced_[pid] = {.not_before = After(now, kRetryInterval), .room_after = reason.room_after};
  ++refused_;
  UpdateCounts();
}

void MappingUpload::Withdraw(Pid pid, MonotonicTime now) {
  const uint32_t key = pid.value();
  // Also when we never published: the kernel side may have inherited an entry at fork.
  bpf_map_delete_elem(processes_fd_, &key);
  Forget(pid, now);
  UpdateCounts();
}

void MappingUpload::Forget(Pid pid, MonotonicTime now) {
  unplaced_.erase(pid);
  const auto it = of_process_.find(pid);
  if (it == of_process_.end()) return;
  Drop(it->second, now);
  of_process_.erase(it);
}

void MappingUpload::Sweep(std::span<const Pid> living, MonotonicTime now) {
  const absl::flat_hash_set<Pid> stay(living.begin(), living.end());
  std::vector<Pid> gone;
  uint32_t key = 0;
  for (const uint32_t* from = nullptr; bpf_map_get_next_key(processes_fd_, from, &key) == 0;) {
    if (!stay.contains(Pid(key))) gone.push_back(Pid(key));
    from = &key;
  }
  swept_ += gone.size();
  for (const auto& [pid, region] : of_process_) {
    if (!stay.contains(pid)) gone.push_back(pid);
  }
  for (const auto& [pid, unplaced] : unplaced_) {
    if (!stay.contains(pid)) gone.push_back(pid);
  }
  for (const Pid pid : gone) Withdraw(pid, now);
}

std::vector<Pid> MappingUpload::TakeMissed(MonotonicTime now) {
  std::vector<std::pair<MonotonicTime, Pid>> missed;
  for (const auto& [pid, unplaced] : unplaced_) {
    if (unplaced.room_after != 0 && unplaced.room_after <= room_.unread()) {
      missed.emplace_back(unplaced.not_before, pid);
      continue;
    }
    if (now < unplaced.not_before) continue;
    const uint32_t key = pid.value();
    pyro_process entry{};
    const bool has_entry = bpf_map_lookup_elem(processes_fd_, &key, &entry) == 0;
    // One that found no room for an entry either cannot be missed.
    if (!has_entry || entry.missed != 0) missed.emplace_back(unplaced.not_before, pid);
  }
  std::ranges::sort(missed);
  if (missed.size() > kMostRetries) missed.resize(kMostRetries);
  std::vector<Pid> pids;
  pids.reserve(missed.size());
  for (const auto& [not_before, pid] : missed) {
    unplaced_[pid] = {.not_before = After(now, kRetryInterval)};
    pids.push_back(pid);
  }
  return pids;
}

std::vector<ObjectId> MappingUpload::TakeUsed() {
  std::vector<ObjectId> used;
  const std::vector<bool> slots = tables_.UsedSlots();
  for (auto& [id, region] : regions_) {
    if (region.unseen.empty() || UsedOf(region).load(std::memory_order_relaxed) == 0) continue;
    std::erase_if(region.unseen, [&](const HeldTable& held) {
      if (slots[held.slot] && tables_.NoteUsed(held.object)) used.push_back(held.object);
      return slots[held.slot];
    });
  }
  return used;
}

bool MappingUpload::AwaitRoom(MonotonicTime now) {
  if (!lacks_room_ || now < next_wait_) return false;
  next_wait_ = After(now, kWaitInterval);
  lacks_room_ = false;
  // If this fails, regions rest for kReaderQuarantine, and whoever is missed is tried again.
  return room_.AwaitUnread().has_value();
}

tl::expected<MappingUpload::RegionId, MappingUpload::NoRoom> MappingUpload::FindOrWrite(
    std::span<const PublishedMapping> mappings, MonotonicTime now) {
  const uint64_t hash = HashOf(mappings);
  const auto known = by_hash_.find(hash);
  if (known != by_hash_.end() && Holds(regions_[known->second], mappings)) return known->second;

  const auto count = static_cast<uint32_t>(mappings.size());
  // An even number: each head shares a cache line with the first mapping.
  const uint32_t slots = (count + 2) & ~1U;
  const tl::expected<uint32_t, NoRoom> first = TakeRoom(slots, now);
  if (!first) return tl::unexpected(first.error());
  const std::span<pyro_mapping> written = pool_.subspan(*first + 1, count);
  std::ranges::transform(mappings, written.begin(), ToAbi);
  const RegionId id = next_id_++;
  Region& region = regions_[id];
  region = {.first = *first,
            .slots = slots,
            .count = count,
            .references = 0,
            .hash = hash,
            .placed = now,
            .idle_since = now,
            .held = HoldTables(written, now),
            .unseen = {}};
  region.unseen = region.held;
  UsedOf(region) = 0;
  GenerationOf(region) = PYRO_MAPPING_GENERATION | (id & (PYRO_MAPPING_GENERATION - 1));
  by_hash_[hash] = id;
  return id;
}

tl::expected<uint32_t, MappingUpload::NoRoom> MappingUpload::TakeRoom(uint32_t slots,
                                                                      MonotonicTime now) {
  if (const std::optional<uint32_t> first = room_.Take(slots)) return *first;
  if (!room_.MayHave(slots)) return tl::unexpected(NoRoom());
  RetireIdle(now, {});
  if (room_.resting() < slots) Evict(slots, now);
  if (room_.resting() == 0) return tl::unexpected(NoRoom());
  lacks_room_ = true;
  return tl::unexpected(NoRoom{.room_after = room_.given_back()});
}

// An object that finds no place for a table refers to table 0, which is never there.
std::vector<MappingUpload::HeldTable> MappingUpload::HoldTables(std::span<pyro_mapping> mappings,
                                                                MonotonicTime now) {
  absl::flat_hash_map<ObjectId, uint32_t> tables;
  for (pyro_mapping& mapping : mappings) {
    const ObjectId object(mapping.object);
    if (object == ObjectId(0)) continue;
    auto known = tables.find(object);
    if (known == tables.end()) {
      const std::optional<uint32_t> table = tables_.Hold(object, now);
      if (!table) continue;
      known = tables.emplace(object, *table).first;
    }
    mapping.table |= known->second;
  }
  std::vector<HeldTable> held;
  held.reserve(tables.size());
  for (const auto& [object, table] : tables) held.push_back({.object = object, .slot = table});
  return held;
}

bool MappingUpload::Holds(const Region& region, std::span<const PublishedMapping> mappings) const {
  if (region.count != mappings.size()) return false;
  return std::ranges::equal(
      pool_.subspan(region.first + 1, region.count), mappings,
      [](const pyro_mapping& a, const PublishedMapping& b) { return Equal(a, ToAbi(b)); });
}

void MappingUpload::Drop(RegionId id, MonotonicTime now) {
  const auto it = regions_.find(id);
  if (--it->second.references > 0) return;
  it->second.idle_since = now;
  idle_.push_back({.since = now, .region = id});
}

void MappingUpload::Retire(RegionId id, MonotonicTime now) {
  const auto it = regions_.find(id);
  Region& region = it->second;
  GenerationOf(region) = 0;
  for (const HeldTable& held : region.held) tables_.Release(held.object, now);
  const auto hashed = by_hash_.find(region.hash);
  if (hashed != by_hash_.end() && hashed->second == id) by_hash_.erase(hashed);
  room_.GiveBack(region.first, region.slots, now);
  regions_.erase(it);
}

void MappingUpload::RetireIdle(MonotonicTime now, std::chrono::nanoseconds after) {
  while (!idle_.empty() && (after.count() == 0 || IsOver(after, idle_.front().since, now))) {
    const Idle idle = idle_.front();
    idle_.pop_front();
    const auto it = regions_.find(idle.region);
    if (it == regions_.end() || it->second.references > 0) continue;
    if (it->second.idle_since == idle.since) Retire(idle.region, now);
  }
}

// The oldest regions that no tick has used since the last look, at most an eighth of the pool or
// `slots`.
std::vector<MappingUpload::RegionId> MappingUpload::Unused(uint32_t slots, MonotonicTime now) {
  std::vector<RegionId> unused;
  for (auto& [id, region] : regions_) {
    const bool was_used = UsedOf(region).exchange(0) != 0;
    if (was_used || region.references == 0) continue;
    if (IsOver(kEvictionInterval, region.placed, now)) unused.push_back(id);
  }
  std::ranges::sort(unused);
  const uint64_t enough = std::max<uint64_t>(slots, pool_.size() / 8);
  uint64_t taken = 0;
  const auto end = std::ranges::find_if(unused, [&](RegionId id) {
    const bool is_enough = taken >= enough;
    taken += regions_[id].slots;
    return is_enough;
  });
  unused.erase(end, unused.end());
  return unused;
}

std::vector<Pid> MappingUpload::Evict(uint32_t slots, MonotonicTime now) {
  if (now < next_eviction_) return {};
  next_eviction_ = After(now, kEvictionInterval);
  const std::vector<RegionId> unused = Unused(slots, now);
  const absl::flat_hash_set<RegionId> regions(unused.begin(), unused.end());
  std::vector<Pid> pids;
  absl::erase_if(of_process_, [&](const auto& of) {
    if (!regions.contains(of.second)) return false;
    pids.push_back(of.first);
    return true;
  });
  for (const Pid pid : pids) unplaced_[pid] = {.not_before = After(now, kRetryInterval)};
  for (const RegionId region : unused) Retire(region, now);
  evicted_ += pids.size();
  return pids;
}

void MappingUpload::ReleaseWithdrawn(MonotonicTime now) {
  RetireIdle(now, kIdleMappings);
  room_.Reuse(now);
}

void MappingUpload::UpdateCounts() {
  known_processes_ = of_process_.size();
  unplaced_processes_ = unplaced_.size();
}

MappingUpload::Counters MappingUpload::counters() const {
  return {.mappings = room_.taken(),
          .room = pool_.size(),
          .processes = known_processes_,
          .unplaced = unplaced_processes_,
          .refused = refused_,
          .evicted = evicted_,
          .swept = swept_};
}

}  // namespace pyrometer
