// SPDX-License-Identifier: Apache-2.0
#include "sampler/mapping_upload.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <iterator>

#include "absl/hash/hash.h"

namespace pyrometer {
namespace {

uint64_t HashOf(std::span<const ObjectMapping> mappings) {
  uint64_t hash = mappings.size();
  for (const ObjectMapping& m : mappings) {
    hash = absl::HashOf(hash, m.start, m.end, m.object, m.bias);
  }
  return hash;
}

pyro_mapping ToAbi(const ObjectMapping& m) {
  return {.start = m.start.value(),
          .end = m.end.value(),
          .bias = m.bias,
          .object = m.object.value(),
          .pad = 0};
}

bool Equal(const pyro_mapping& a, const pyro_mapping& b) {
  return a.start == b.start && a.end == b.end && a.bias == b.bias && a.object == b.object;
}

}  // namespace

std::optional<uint32_t> FreeRanges::Take(uint32_t count) {
  for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
    const auto [first, size] = *it;
    if (size < count) continue;
    ranges_.erase(it);
    if (size > count) ranges_.emplace(first + count, size - count);
    return first;
  }
  return std::nullopt;
}

void FreeRanges::GiveBack(uint32_t first, uint32_t count) {
  auto next = ranges_.lower_bound(first);
  if (next != ranges_.end() && next->first == first + count) {
    count += next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == first) {
      previous->second += count;
      return;
    }
  }
  ranges_.emplace(first, count);
}

bool MappingUpload::Publish(const ProcessKey& process, ExecId exec,
                            std::span<const ObjectMapping> mappings, MonotonicTime now) {
  Reuse(now);
  const std::optional<RegionId> id = mappings.empty() ? std::nullopt : FindOrWrite(mappings);
  if (!id) {
    Withdraw(process.pid, now);
    return mappings.empty();
  }
  Region& region = regions_[*id];
  ++region.references;
  const pyro_process entry{.start_ticks = process.start_time.value(),
                           .exec_id = exec.value(),
                           .first_mapping = region.first,
                           .mapping_count = region.count,
                           .pad = 0};
  const uint32_t pid = process.pid.value();
  if (bpf_map_update_elem(processes_fd_, &pid, &entry, BPF_ANY) != 0) {
    Drop(*id, now);
    Withdraw(process.pid, now);
    return false;
  }
  if (const auto [it, added] = of_process_.try_emplace(process.pid, *id); !added) {
    const RegionId before = std::exchange(it->second, *id);
    Drop(before, now);
  }
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
}

std::optional<MappingUpload::RegionId> MappingUpload::FindOrWrite(
    std::span<const ObjectMapping> mappings) {
  const uint64_t hash = HashOf(mappings);
  const auto known = by_hash_.find(hash);
  if (known != by_hash_.end() && Holds(regions_[known->second], mappings)) return known->second;

  const auto count = static_cast<uint32_t>(mappings.size());
  const std::optional<uint32_t> first = free_.Take(count);
  if (!first) return std::nullopt;
  std::ranges::transform(mappings, pool_.begin() + *first, ToAbi);
  const RegionId id = next_id_++;
  regions_[id] = Region{.first = *first, .count = count, .references = 0, .hash = hash};
  by_hash_[hash] = id;
  return id;
}

bool MappingUpload::Holds(const Region& region, std::span<const ObjectMapping> mappings) const {
  if (region.count != mappings.size()) return false;
  return std::ranges::equal(
      pool_.subspan(region.first, region.count), mappings,
      [](const pyro_mapping& a, const ObjectMapping& b) { return Equal(a, ToAbi(b)); });
}

void MappingUpload::Drop(RegionId id, MonotonicTime now) {
  const auto it = regions_.find(id);
  if (--it->second.references > 0) return;
  retired_.push_back({.when = now, .first = it->second.first, .count = it->second.count});
  const auto hashed = by_hash_.find(it->second.hash);
  if (hashed != by_hash_.end() && hashed->second == id) by_hash_.erase(hashed);
  regions_.erase(it);
}

void MappingUpload::Reuse(MonotonicTime now) {
  constexpr uint64_t kHold = std::chrono::nanoseconds(kQuarantine).count();
  while (!retired_.empty() && now.value() - retired_.front().when.value() > kHold) {
    free_.GiveBack(retired_.front().first, retired_.front().count);
    retired_.pop_front();
  }
}

}  // namespace pyrometer
