// SPDX-License-Identifier: Apache-2.0
#include "process/address_space.h"

#include <algorithm>
#include <iterator>

namespace pyrometer {
namespace {

// A program that keeps remapping code must not make us remember it all: beyond this the oldest
// past is dropped before its time.
constexpr size_t kMaxPast = 4096;

bool SameMeaning(const ObjectMapping& a, const ObjectMapping& b) {
  return a.object == b.object && a.bias == b.bias;
}

}  // namespace

ObjectMapping AddressSpace::MappingOf(const Spans::value_type& entry) {
  return {entry.first, entry.second.end, entry.second.object, entry.second.bias};
}

AddressSpace::Spans& AddressSpace::Writable() {
  if (!current_) {
    current_ = std::make_shared<Spans>();
  } else if (current_.use_count() > 1) {
    current_ = std::make_shared<Spans>(*current_);
  }
  return *current_;
}

bool AddressSpace::Map(const ObjectMapping& mapping, MonotonicTime when) {
  if (mapping.end <= mapping.start) return false;
  latest_ = std::max(latest_, when);
  const std::vector<ObjectMapping> gaps = Clear(mapping, latest_);
  for (const ObjectMapping& gap : gaps) {
    Writable()[gap.start] = {gap.end, gap.object, gap.bias, latest_};
  }
  return !gaps.empty();
}

std::vector<ObjectMapping> AddressSpace::Clear(const ObjectMapping& keep, MonotonicTime when) {
  std::vector<Spans::value_type> overlapped;
  if (current_) {
    auto it = current_->upper_bound(keep.start);
    if (it != current_->begin() && std::prev(it)->second.end > keep.start) --it;
    for (; it != current_->end() && it->first < keep.end; ++it) overlapped.push_back(*it);
  }
  std::vector<ObjectMapping> gaps;
  ObjectMapping gap = keep;  // its start moves up
  for (const Spans::value_type& entry : overlapped) {
    const ObjectMapping old = MappingOf(entry);
    const MonotonicTime since = entry.second.since;
    if (SameMeaning(old, keep)) {
      gap.end = old.start;
      if (gap.start < gap.end) gaps.push_back(gap);
      gap.start = old.end;
      continue;
    }
    Spans& spans = Writable();
    spans.erase(old.start);
    const Address cut_start = std::max(old.start, keep.start);
    const Address cut_end = std::min(old.end, keep.end);
    if (old.start < cut_start) spans[old.start] = {cut_start, old.object, old.bias, since};
    if (cut_end < old.end) spans[cut_end] = {old.end, old.object, old.bias, since};
    Retire({cut_start, cut_end, old.object, old.bias}, since, when);
  }
  gap.end = keep.end;
  if (gap.start < gap.end) gaps.push_back(gap);
  return gaps;
}

void AddressSpace::Replace(const std::vector<ObjectMapping>& mappings, MonotonicTime when) {
  latest_ = std::max(latest_, when);
  const std::shared_ptr<Spans> before = std::exchange(current_, nullptr);
  for (const ObjectMapping& mapping : mappings) Map(mapping, latest_);
  if (!before) return;
  for (const Spans::value_type& entry : *before) {
    const ObjectMapping old = MappingOf(entry);
    const auto it = current_ ? current_->find(old.start) : Spans::iterator();
    if (current_ && it != current_->end() && MappingOf(*it) == old) {
      it->second.since = entry.second.since;
    } else {
      Retire(old, entry.second.since, latest_);
    }
  }
}

void AddressSpace::Retire(const ObjectMapping& mapping, MonotonicTime since, MonotonicTime until) {
  if (since >= until) return;
  past_.push_back({mapping, since, until});
  if (past_.size() > kMaxPast) past_.pop_front();
}

std::optional<ObjectMapping> AddressSpace::At(Address address, MonotonicTime when) const {
  if (current_) {
    const auto it = current_->upper_bound(address);
    if (it != current_->begin()) {
      const Spans::value_type& entry = *std::prev(it);
      if (address < entry.second.end && entry.second.since <= when) return MappingOf(entry);
    }
  }
  const auto alive = std::partition_point(past_.begin(), past_.end(),
                                          [&](const PastSpan& p) { return p.until <= when; });
  for (auto it = alive; it != past_.end(); ++it) {
    if (it->since <= when && it->mapping.Contains(address)) return it->mapping;
  }
  return std::nullopt;
}

std::vector<ObjectMapping> AddressSpace::Current() const {
  std::vector<ObjectMapping> mappings;
  if (!current_) return mappings;
  mappings.reserve(current_->size());
  for (const Spans::value_type& entry : *current_) {
    const ObjectMapping next = MappingOf(entry);
    if (!mappings.empty() && mappings.back().end == next.start &&
        SameMeaning(mappings.back(), next)) {
      mappings.back().end = next.end;
    } else {
      mappings.push_back(next);
    }
  }
  return mappings;
}

AddressSpace AddressSpace::Fork() const {
  AddressSpace child;
  child.current_ = current_;
  child.latest_ = latest_;
  return child;
}

void AddressSpace::Forget(MonotonicTime horizon) {
  while (!past_.empty() && past_.front().until <= horizon) past_.pop_front();
}

}  // namespace pyrometer
