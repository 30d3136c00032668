// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "base/system_error.h"

namespace pyrometer {
Result<PerfMap::Reading> PerfMap::Look(int fd, bool again) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return SystemError(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  Reading reading{.size = static_cast<uint64_t>(status.st_size),
                  .inode = {.device = status.st_dev, .number = status.st_ino}};
  reading.is_same = reading.inode == inode_ && reading.size >= offset_;
  reading.goes_on = reading.is_same && !(again && missing_at_ != 0);
  reading.unread = reading.goes_on ? reading.size - offset_ : reading.size;
  return reading;
}

Result<uint64_t> PerfMap::Unread(int fd, bool again) const {
  ASSIGN_OR_RETURN(const Reading reading, Look(fd, again));
  return reading.unread;
}

bool PerfMap::HasAll(int fd) const {
  const Result<Reading> reading = Look(fd, false);
  return reading && reading->goes_on && reading->unread == 0 && missing_at_ == 0;
}

Result<void> PerfMap::Update(int fd, Writer writer, Limits& limits, PerfMapReader& reader) {
  ASSIGN_OR_RETURN(const Reading reading, Look(fd, limits.again));
  const auto& [is_same, goes_on, size, unread, inode] = reading;
  const uint64_t wanted = std::min<uint64_t>(unread, 2 * uint64_t{limits.memory});
  const bool is_new = !goes_on || size != size_;  // else it is a line without a newline
  if (is_new && wanted > limits.to_read) {
    return Fail(ErrorCode::kExhausted, "more than may be read now");
  }
  limits.to_read -= std::min(wanted, limits.to_read);
  losses_.left_out += unread - wanted;
  const bool has_stopped = writer == Writer::kGone || (is_same && size == size_);
  if (!goes_on || wanted < unread) BeginAt(size - wanted, inode);
  if (wanted < unread) {
    is_cut_ = true;
    missing_at_ = limits.memory;
  }
  tail_.reset();
  if (offset_ == size) {  // what is known is true, whether or not anybody could read now
    size_ = size;
    return {};
  }
  size_t most = limits.memory;
  const auto take = [&](const PerfMapLines& lines) {
    offset_ = lines.end;
    is_cut_ = lines.ends_in_line;
    losses_.bad_lines += lines.bad;
    for (const PerfMapLines::Function& function : lines.functions) {
      Insert(function);
      if (bytes() <= most) continue;
      ShrinkBelow(limits.memory);
      // Not for each line, if what is left is not quite that little.
      most = std::max(limits.memory, bytes() + limits.memory / 8);
    }
  };
  Result<std::optional<PerfMapFunction>> last =
      reader.Read(fd, {.begin = offset_, .end = size, .begins_in_line = is_cut_}, take);
  if (bytes() > limits.memory) ShrinkBelow(limits.memory);
  if (!last) return last.error();
  size_ = size;
  if (has_stopped) tail_ = *std::move(last);
  return {};
}

void PerfMap::BeginAt(uint64_t offset, const Inode& inode) {
  PerfMap fresh;
  fresh.losses_ = losses_;
  fresh.offset_ = offset;
  fresh.inode_ = inode;
  std::swap(*this, fresh);  // an assignment might keep the memory
}

// Cuts out of the older ranges what the new one covers.
void PerfMap::Insert(const PerfMapLines::Function& function) {
  const auto& [start, end, name] = function;
  auto next = ranges_.lower_bound(start);
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    const Range old = before->second;
    if (old.end > start) before->second.end = start;
    if (old.end > end) ranges_[end] = old;
  }
  next = ranges_.lower_bound(start);
  while (next != ranges_.end() && next->first < end) {
    const Range old = next->second;
    next = ranges_.erase(next);
    if (old.end > end) ranges_[end] = old;  // nothing lies between it and the next: the last turn
    if (old.end >= end) break;
  }
  ranges_[start] = {
      .end = end, .name = Keep(name), .name_size = static_cast<uint32_t>(name.size())};
}

uint64_t PerfMap::Keep(std::string_view name) {
  if (chunks_.empty() || chunks_.back().size() + name.size() > kChunk) chunks_.emplace_back();
  std::string& chunk = chunks_.back();
  // A first chunk may be the only one. By powers of two, since less than twice as much is not had.
  size_t capacity = chunks_.size() == 1 ? kLeastChunk : kChunk;
  while (capacity < chunk.size() + name.size()) capacity *= 2;
  if (capacity > chunk.capacity()) chunk.reserve(capacity);
  const uint64_t place = (first_chunk_ + chunks_.size() - 1) * kChunk + chunk.size();
  chunk += name;
  return place;
}

std::string_view PerfMap::NameOf(const Range& range) const {
  const std::string& chunk = chunks_[range.name / kChunk - first_chunk_];
  return std::string_view(chunk).substr(range.name % kChunk, range.name_size);
}

void PerfMap::ShrinkBelow(size_t memory) {
  std::vector<Range*> ranges;  // the oldest first
  ranges.reserve(ranges_.size());
  for (auto& [start, range] : ranges_) ranges.push_back(&range);
  std::ranges::sort(ranges, {}, &Range::name);
  // From the end, all parts of a function at a time, whose name is there once.
  size_t total = 0;
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (size_t end = ranges.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && ranges[begin - 1]->name == ranges[begin]->name) --begin;
    total += ranges[begin]->name_size + (end - begin) * kRangeBytes;
    if (total > memory / 4 * 3) break;
    oldest = ranges[begin]->name;
    end = begin;
  }
  std::vector<std::string> before;
  std::swap(before, chunks_);
  const uint64_t first_before = std::exchange(first_chunk_, first_chunk_ + before.size());
  uint64_t place_before = 0;
  uint64_t place = 0;
  for (Range* const range : ranges) {
    if (range->name < oldest) continue;
    if (place == 0 || range->name != place_before) {
      place_before = range->name;
      const std::string& chunk = before[place_before / kChunk - first_before];
      place = Keep(std::string_view(chunk).substr(place_before % kChunk, range->name_size));
    }
    range->name = place;
  }
  // All that are kept have places in the new chunks. In a new map, whose nodes are full.
  absl::btree_map<uint64_t, Range> kept;
  for (const auto& [start, range] : ranges_) {
    if (range.name >= first_chunk_ * kChunk) kept.emplace_hint(kept.end(), start, range);
  }
  std::swap(kept, ranges_);
  const uint64_t forgotten = kept.size() - ranges_.size();
  if (forgotten == 0) return;
  losses_.forgotten += forgotten;
  missing_at_ = memory;
}

std::optional<std::string_view> PerfMap::Find(Address address) const {
  if (tail_ && tail_->Contains(address)) return tail_->name;
  const auto next = ranges_.upper_bound(address.value());
  if (next == ranges_.begin()) return std::nullopt;
  const Range& range = std::prev(next)->second;
  if (address.value() >= range.end) return std::nullopt;
  return NameOf(range);
}

size_t PerfMap::bytes() const {
  const size_t names = chunks_.size() > 1 ? chunks_.size() * kChunk
                       : chunks_.empty()  ? 0
                                          : chunks_.front().capacity();
  return names + (tail_ ? tail_->name.capacity() : 0) + ranges_.size() * kRangeBytes;
}

}  // namespace pyrometer
