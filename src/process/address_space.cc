// SPDX-License-Identifier: Apache-2.0
#include "process/address_space.h"

#include <algorithm>
#include <iterator>

namespace pyrometer {
namespace {

// A program that keeps remapping code must not make us remember it all: beyond this the oldest
// past is dropped before its time.
constexpr size_t kMaxPast = 4096;

// A tick that began before the kernel side was told may be counted that much later: it takes some
// 10 us, unless a virtual machine's CPU is taken away in the middle of it.
constexpr uint64_t kLongestTickNs = 10'000'000;

bool SameContent(const ObjectMapping& a, const ObjectMapping& b) {
  return a.object == b.object && a.bias == b.bias;
}

bool SameContent(const CodeMapping& a, const CodeMapping& b) {
  return SameContent(a.mapping, b.mapping);
}

bool SameMeaning(const CodeMapping& a, const CodeMapping& b) {
  return SameContent(a, b) && a.counted == b.counted;
}

CodeMapping Part(CodeMapping code, Address start, Address end) {
  code.mapping.start = std::max(code.mapping.start, start);
  code.mapping.end = std::min(code.mapping.end, end);
  return code;
}

AddressContent DoubtfulAt(Address address) {
  return {.address = address, .is_sure = false, .mapping = std::nullopt};
}

// `codes`: ascending, not overlapping.
AddressSpace::Picture PictureOf(const std::vector<CodeMapping>& codes) {
  AddressSpace::Picture picture;
  picture.mappings.reserve(codes.size());
  for (const CodeMapping& code : codes) {
    const ObjectMapping& next = code.mapping;
    if (code.counted) picture.counted_bytes += next.end.value() - next.start.value();
    ObjectMapping* const last = picture.mappings.empty() ? nullptr : &picture.mappings.back();
    if (last != nullptr && last->end == next.start && last->object == next.object &&
        last->bias == next.bias) {
      last->end = next.end;
    } else {
      picture.mappings.push_back(next);
    }
  }
  return picture;
}

}  // namespace

AddressSpace::AddressSpace(std::shared_ptr<UserShare> share)
    : current_(share), past_(Charged<PastSpan>(share)), shifting_({}, std::move(share)) {}

void AddressSpace::ChargeTo(const std::shared_ptr<UserShare>& share) {
  current_.ChargeTo(share);
  past_ = Past(past_, Charged<PastSpan>(share));
  shifting_ = AddressRanges(shifting_, share);
}

bool AddressSpace::Map(const CodeMapping& mapping, MonotonicTime when) {
  const auto [start, end] = std::pair(mapping.mapping.start, mapping.mapping.end);
  if (end <= start) return false;
  latest_ = std::max(latest_, when);
  std::vector<CodeMapping> gaps;
  Address gap_start = start;
  for (const MappedSpan& old : current_.Overlapping(start, end)) {
    if (SameMeaning(old.code, mapping)) {
      gaps.push_back(Part(mapping, gap_start, old.code.mapping.start));
      gap_start = old.code.mapping.end;
      continue;
    }
    if (!SameContent(old.code, mapping)) {
      const ObjectMapping changed = Part(old.code, start, end).mapping;
      shifting_.Add(changed.start, changed.end);
    }
    Cut(old, start, end);
  }
  gaps.push_back(Part(mapping, gap_start, end));
  std::erase_if(gaps, [](const CodeMapping& gap) { return gap.mapping.end <= gap.mapping.start; });
  for (const CodeMapping& gap : gaps) current_.Add({gap, latest_});
  return !gaps.empty();
}

// Ends `span` within [start, end); what it has beyond stays.
void AddressSpace::Cut(const MappedSpan& span, Address start, Address end) {
  const ObjectMapping& whole = span.code.mapping;
  const CodeMapping ended = Part(span.code, start, end);
  current_.Erase(whole.start);
  if (whole.start < start) current_.Add({Part(span.code, whole.start, start), span.since});
  if (end < whole.end) current_.Add({Part(span.code, end, whole.end), span.since});
  if (span.since >= latest_) return;
  past_.push_back({.code = ended, .since = span.since, .until = latest_});
  if (past_.size() > kMaxPast) past_.erase(past_.begin(), past_.begin() + kMaxPast / 8);
}

bool AddressSpace::Unmap(Address start, Address end) {
  const std::vector<MappedSpan> gone = current_.Overlapping(start, end);
  for (const MappedSpan& old : gone) {
    const ObjectMapping ended = Part(old.code, start, end).mapping;
    if (ended.object != ObjectId(0)) shifting_.Add(ended.start, ended.end);
    Cut(old, start, end);
  }
  return !gone.empty();
}

bool AddressSpace::Forget(Address start, Address end, MonotonicTime when) {
  latest_ = std::max(latest_, when);
  const std::vector<MappedSpan> gone = current_.Overlapping(start, end);
  for (const MappedSpan& old : gone) Cut(old, old.code.mapping.start, old.code.mapping.end);
  return !gone.empty();
}

bool AddressSpace::Replace(const std::vector<CodeMapping>& mappings, MonotonicTime when) {
  latest_ = std::max(latest_, when);
  bool changed = false;
  Address free;  // where the last mapping ended
  for (const CodeMapping& mapping : mappings) {
    changed |= Unmap(free, mapping.mapping.start);
    changed |= Map(mapping, latest_);
    free = std::max(free, mapping.mapping.end);
  }
  changed |= Unmap(free, Address(UINT64_MAX));
  return changed;
}

std::vector<CodeMapping> AddressSpace::KnownPartsOf(
    const std::vector<CodeMapping>& mappings) const {
  std::vector<CodeMapping> parts;
  for (const CodeMapping& mapping : mappings) {
    for (const MappedSpan& span :
         current_.Overlapping(mapping.mapping.start, mapping.mapping.end)) {
      if (SameMeaning(span.code, mapping)) parts.push_back(Part(mapping, span.start(), span.end()));
    }
  }
  return parts;
}

std::optional<ObjectMapping> AddressSpace::At(Address address, MonotonicTime when) const {
  const MappedSpan* const span = current_.At(address);
  if (span != nullptr && span->since <= when) return span->code.mapping;
  for (auto it = FirstAlive(when); it != past_.end(); ++it) {
    if (it->since <= when && it->code.mapping.Contains(address)) return it->code.mapping;
  }
  return std::nullopt;
}

AddressSpace::Picture AddressSpace::At(MonotonicTime when) const {
  std::vector<CodeMapping> codes;
  codes.reserve(current_.size());
  current_.ForEach([&](const MappedSpan& span) {
    if (span.since <= when) codes.push_back(span.code);
  });
  const size_t from_current = codes.size();
  for (auto it = FirstAlive(when); it != past_.end(); ++it) {
    if (it->since <= when) codes.push_back(it->code);
  }
  if (codes.size() > from_current) {
    std::ranges::sort(codes, {}, [](const CodeMapping& code) { return code.mapping.start; });
  }
  return PictureOf(codes);
}

AddressSpace::Past::const_iterator AddressSpace::FirstAlive(MonotonicTime when) const {
  return std::partition_point(past_.begin(), past_.end(),
                              [&](const PastSpan& p) { return p.until <= when; });
}

AddressSpace::Past::const_iterator AddressSpace::FirstOutdated(const Period& period) const {
  return std::partition_point(past_.begin(), past_.end(),
                              [&](const PastSpan& p) { return p.told <= period.first; });
}

void AddressSpace::NoteTold(MonotonicTime now) {
  for (auto it = past_.rbegin(); it != past_.rend() && it->told == kNotTold; ++it) {
    it->told = MonotonicTime(now.value() + kLongestTickNs);
  }
}

bool AddressSpace::WasOutdated(const Period& period) const {
  const auto first = FirstOutdated(period);
  return first != past_.end() && first->until <= period.last;
}

std::optional<AddressContent> AddressSpace::FindOutdated(ObjectId object, ElfAddress address,
                                                         const Period& period) const {
  std::optional<AddressContent> found;
  for (auto it = FirstOutdated(period); it != past_.end() && it->until <= period.last; ++it) {
    const ObjectMapping& ended = it->code.mapping;
    const Address place(address.value() + ended.bias);
    if (ended.object != object || !ended.Contains(place)) continue;
    AddressContent content = ContentIn(period, place);
    if (content.is_sure && content.mapping && SameContent(*content.mapping, ended)) continue;
    if (found && found->address == place) continue;
    if (found || IsElsewhere(ended, address, period.first)) content = DoubtfulAt(place);
    found = content;
  }
  return found;
}

// True if the object shows `address` at another place too: then that may be the one that was met.
bool AddressSpace::IsElsewhere(const ObjectMapping& mapping, ElfAddress address,
                               MonotonicTime when) const {
  const std::vector<ObjectMapping> then = At(when).mappings;
  return std::ranges::any_of(then, [&](const ObjectMapping& other) {
    return other.object == mapping.object && other.bias != mapping.bias &&
           other.Contains(Address(address.value() + other.bias));
  });
}

AddressContent AddressSpace::ContentIn(const Period& period, Address address) const {
  // Nearly always: it was there before, and still is.
  if (const MappedSpan* const span = current_.At(address);
      span != nullptr && span->since <= period.first) {
    return {.address = address, .is_sure = true, .mapping = span->code.mapping};
  }
  const std::optional<ObjectMapping> first = At(address, period.first);
  const auto is_first = [&](const std::optional<ObjectMapping>& other) {
    return first.has_value() == other.has_value() && (!first || SameContent(*first, *other));
  };
  bool is_sure = is_first(At(address, period.last));
  for (auto it = FirstAlive(period.first); it != past_.end() && it->until <= period.last; ++it) {
    if (it->code.mapping.Contains(address)) is_sure = is_sure && is_first(it->code.mapping);
  }
  if (!is_sure) return DoubtfulAt(address);
  return {.address = address, .is_sure = true, .mapping = first};
}

bool AddressSpace::Reinterpret(const Meaning& meaning, Replaced& replaced) {
  const bool changed = ReinterpretPast(meaning);
  if (current_.empty()) return changed;
  const auto [known, is_new] = replaced.spans_.try_emplace(current_, current_);
  if (is_new) {
    SpanMap& now = known->second;
    current_.ForEach([&](const MappedSpan& span) {
      const auto parts = meaning(span.code.mapping);
      if (!parts) return;
      now.Erase(span.start());
      for (const ObjectMapping& part : *parts) {
        now.Add({{part, span.code.counted}, span.since});
      }
    });
  }
  if (current_ == known->second) return changed;
  current_ = known->second;
  current_.ChargeTo(past_.get_allocator().share());  // and not to who was the first
  return true;
}

bool AddressSpace::ReinterpretPast(const Meaning& meaning) {
  Past past(past_.get_allocator());
  bool changed = false;
  for (const PastSpan& span : past_) {
    const auto parts = meaning(span.code.mapping);
    if (!parts) {
      past.push_back(span);
      continue;
    }
    changed = true;
    for (const ObjectMapping& part : *parts) {
      past.push_back(span);
      past.back().code.mapping = part;
    }
  }
  if (changed) past_ = std::move(past);
  return changed;
}

AddressSpace AddressSpace::Fork(MonotonicTime when, std::shared_ptr<UserShare> share) const {
  AddressSpace child(share);
  child.current_ = current_;
  child.current_.ChargeTo(share);
  for (auto it = FirstOutdated({when, when}); it != past_.end(); ++it) {
    child.past_.push_back({.code = it->code, .since = it->since, .until = it->until});
  }
  child.shifting_ = AddressRanges(shifting_, std::move(share));
  child.latest_ = latest_;
  return child;
}

void AddressSpace::AddObjects(absl::flat_hash_set<ObjectId>& objects) const {
  for (const PastSpan& past : past_) objects.insert(past.code.mapping.object);
  current_.ForEach([&](const MappedSpan& span) { objects.insert(span.code.mapping.object); });
}

void AddressSpace::Forget(MonotonicTime horizon) {
  past_.erase(past_.begin(), FirstAlive(horizon));
  if (past_.capacity() > 4 * past_.size()) past_.shrink_to_fit();
}

}  // namespace pyrometer
