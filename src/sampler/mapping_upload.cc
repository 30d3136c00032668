// SPDX-License-Identifier: Apache-2.0
#include "sampler/mapping_upload.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
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
  const std::optional<RegionId> id = mappings.empty() ? std::nullopt : FindOrWrite(mappings, now);
  if (!id) {
    Withdraw(process.pid, now);
    refused_ += mappings.empty() ? 0 : 1;
    return mappings.empty();
  }
  Region& region = regions_[*id];
  ++region.references;
  const pyro_process entry{.start_ticks = process.start_time.value(),
                           .exec_id = exec.value(),
                           .first_mapping = region.first,
                           .mapping_count = region.count,
                           .exec_pages = static_cast<uint32_t>(exec_pages.count),
                           .exec_slack = static_cast<uint32_t>(exec_pages.slack),
                           .pad = 0};
  const uint32_t pid = process.pid.value();
  if (bpf_map_update_elem(processes_fd_, &pid, &entry, BPF_ANY) != 0) {
    Drop(*id, now);
    Withdraw(process.pid, now);
    ++refused_;
    return false;
  }
  if (const auto [it, added] = of_process_.try_emplace(process.pid, *id); !added) {
    const RegionId before = std::exchange(it->second, *id);
    Drop(before, now);
  }
  known_processes_ = of_process_.size();
  return true;
}

void MappingUpload::Withdraw(Pid pid, MonotonicTime now) {
  const uint32_t key = pid.value();
  // Also when we never published: the kernel side may have inherited an entry at fork.
  bpf_map_delete_elem(processes_fd_, &key);
  const auto it = of_process_.find(pid);
  if (it == of_process_.end()) return;
  Drop(it->second, now);
  of_process_.erase(it);
  known_processes_ = of_process_.size();
}

std::optional<MappingUpload::RegionId> MappingUpload::FindOrWrite(
    std::span<const PublishedMapping> mappings, MonotonicTime now) {
  const uint64_t hash = HashOf(mappings);
  const auto known = by_hash_.find(hash);
  if (known != by_hash_.end() && Holds(regions_[known->second], mappings)) return known->second;

  const auto count = static_cast<uint32_t>(mappings.size());
  const std::optional<uint32_t> first = free_.Take(count);
  if (!first) return std::nullopt;
  mappings_ += count;
  const std::span<pyro_mapping> written = pool_.subspan(*first, count);
  std::ranges::transform(mappings, written.begin(), ToAbi);
  const RegionId id = next_id_++;
  regions_[id] = Region{.first = *first,
                        .count = count,
                        .references = 0,
                        .hash = hash,
                        .objects = HoldTables(written, now)};
  by_hash_[hash] = id;
  return id;
}

// An object that finds no place for a table refers to table 0, which is never there.
std::vector<ObjectId> MappingUpload::HoldTables(std::span<pyro_mapping> mappings,
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
  std::vector<ObjectId> held;
  held.reserve(tables.size());
  for (const auto& [object, table] : tables) held.push_back(object);
  return held;
}

bool MappingUpload::Holds(const Region& region, std::span<const PublishedMapping> mappings) const {
  if (region.count != mappings.size()) return false;
  return std::ranges::equal(
      pool_.subspan(region.first, region.count), mappings,
      [](const pyro_mapping& a, const PublishedMapping& b) { return Equal(a, ToAbi(b)); });
}

void MappingUpload::Drop(RegionId id, MonotonicTime now) {
  const auto it = regions_.find(id);
  if (--it->second.references > 0) return;
  const auto hashed = by_hash_.find(it->second.hash);
  if (hashed != by_hash_.end() && hashed->second == id) by_hash_.erase(hashed);
  retired_.push_back({.when = now, .region = std::move(it->second)});
  regions_.erase(it);
}

void MappingUpload::ReleaseWithdrawn(MonotonicTime now) {
  while (!retired_.empty() && IsOver(kForkQuarantine, retired_.front().when, now)) {
    const Region& region = retired_.front().region;
    free_.GiveBack(region.first, region.count);
    mappings_ -= region.count;
    for (const ObjectId object : region.objects) tables_.Release(object, now);
    retired_.pop_front();
  }
}

MappingUpload::Counters MappingUpload::counters() const {
  return {.mappings = mappings_,
          .room = pool_.size(),
          .processes = known_processes_,
          .refused = refused_};
}

}  // namespace pyrometer
