// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {
namespace {

// What malloc takes for a block beyond what was asked for, or about.
constexpr size_t kBlockOverhead = 16;
// Of the memory, what replaced code may keep when something has to go.
constexpr size_t kPastShare = 4;
// Into so many parts others may have cut a function that is moved: the rest stay where they are.
constexpr int kMostParts = 1024;
// Of places that began before an address, so many are looked at.
constexpr int kMostPastSteps = 32;

}  // namespace

size_t JitDump::Function::line_bytes() const {
  return lines.capacity() == 0 ? 0 : lines.capacity() * sizeof(JitLine) + kBlockOverhead;
}

size_t JitDump::Function::bytes() const {
  return texts.capacity() + kBlockOverhead + line_bytes();
}

Result<JitDump::Reading> JitDump::Look(int fd) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return SystemError(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  Reading reading{.size = static_cast<uint64_t>(status.st_size),
                  .inode = {.device = status.st_dev, .number = status.st_ino}};
  reading.goes_on = reading.inode == inode_ && reading.size >= size_ && reading.size >= offset_;
  return reading;
}

Result<uint64_t> JitDump::Unread(int fd) const {
  ASSIGN_OR_RETURN(const Reading reading, Look(fd));
  if (!reading.goes_on) return reading.size;
  return broken_ ? 0 : reading.size - std::max(size_, offset_);
}

bool JitDump::HasAll(int fd) const {
  const Result<Reading> reading = Look(fd);
  return reading && reading->goes_on && (broken_ || reading->size == size_);
}

Result<void> JitDump::Update(int fd, Limits& limits, JitDumpReader& reader) {
  ASSIGN_OR_RETURN(const Reading reading, Look(fd));
  if (!reading.goes_on) BeginAgain(reading.inode);
  if (broken_) return *broken_;
  if (reading.size == size_) return {};  // the last record may still be being written
  if (limits.to_read == 0) return Fail(ErrorCode::kExhausted, "more than may be read now");
  bool is_rewritten = false;
  bool gets_on = false;
  const auto take = [&](const JitDumpRecords& records) {
    limits.to_read -= std::min(records.read, limits.to_read);
    gets_on = true;
    is_rewritten |= offset_ > 0 && records.made != made_;
    if (is_rewritten) return;
    made_ = records.made;
    Take(records);
    if (bytes() > limits.memory) ShrinkBelow(limits.memory);
  };
  const Result<bool> is_all =
      reader.Read(fd, {.begin = offset_, .end = reading.size, .to_read = limits.to_read}, take);
  SortPast();
  if (bytes() > limits.memory) ShrinkBelow(limits.memory);
  // As a program does that is started anew, with the same pid, in a container.
  const bool is_lost = !is_all && is_all.error().code() == ErrorCode::kMalformed && !gets_on;
  if (is_rewritten || (is_lost && offset_ > 0 && !has_begun_again_)) {
    BeginAgain(reading.inode);
    has_begun_again_ = true;
    return Fail(ErrorCode::kInternal, "the file was rewritten");
  }
  if (!is_all) {
    const ErrorCode code = is_all.error().code();
    if (code == ErrorCode::kMalformed || code == ErrorCode::kUnsupported) broken_ = is_all.error();
    return is_all.error();
  }
  if (!*is_all) return Fail(ErrorCode::kExhausted, "more than may be read now");
  size_ = reading.size;
  has_begun_again_ = false;
  return {};
}

void JitDump::BeginAgain(const Inode& inode) {
  JitDump fresh;
  fresh.losses_ = losses_;
  fresh.horizon_ = horizon_;
  fresh.inode_ = inode;
  std::swap(*this, fresh);  // an assignment might keep the memory
}

void JitDump::Take(const JitDumpRecords& records) {
  offset_ = records.end;
  losses_.bad_records += records.bad;
  losses_.lines_left_out += records.lines_left_out;
  for (const JitDumpRecords::Record& record : records.records) {
    switch (record.kind) {
      case JitDumpRecords::Record::Kind::kLoad:
        Load(record);
        break;
      case JitDumpRecords::Record::Kind::kMove:
        Move(record);
        break;
    }
  }
}

void JitDump::Load(const JitDumpRecords::Record& record) {
  Clear(record.start, record.start + record.size, record.time);
  if (record.name.empty()) return;
  Put(record.start, {.end = record.start + record.size,
                     .origin = record.start,
                     .function = Keep(record),
                     .since = record.time});
}

// A function is whole where it is moved to, even if something else seems to have overwritten a part
// of it before.
void JitDump::Move(const JitDumpRecords::Record& record) {
  const uint64_t old_start = record.old_start;
  const auto at_start = places_.find(old_start);
  std::optional<Place> moved;
  if (at_start != places_.end() && at_start->second.origin == old_start) moved = at_start->second;
  if (moved) {
    ++functions_[moved->function].places;  // so that it is kept meanwhile
    const uint64_t size = functions_[moved->function].size;
    int steps = 0;
    for (auto next = at_start; next != places_.end() && next->first < old_start + size;) {
      if (++steps > kMostParts) break;
      const auto [start, place] = *next;
      if (place.origin != old_start || place.function != moved->function) {
        ++next;
        continue;
      }
      next = places_.erase(next);
      Retire(start, place, record.time);
    }
    moved->end = record.start + std::min(size, record.size);
    moved->origin = record.start;
    moved->since = record.time;
  }
  Clear(record.start, record.start + record.size, record.time);
  if (!moved) return;
  Put(record.start, *moved);
  Release(moved->function);
}

JitDump::FunctionNumber JitDump::Keep(const JitDumpRecords::Record& record) {
  Function function{.size = record.size};
  size_t size = record.name.size() + 1;
  for (const std::string_view file : record.files) size += file.size() + 1;
  function.texts.reserve(size);
  function.texts.append(record.name).push_back('\0');
  std::vector<uint32_t> files;
  for (const std::string_view file : record.files) {
    files.push_back(static_cast<uint32_t>(function.texts.size()));
    function.texts.append(file).push_back('\0');
  }
  function.lines.assign(record.lines.begin(), record.lines.end());
  for (JitLine& line : function.lines) line.file = line.line == 0 ? 0 : files[line.file];
  function_bytes_ += function.bytes();
  functions_.emplace_hint(functions_.end(), next_function_, std::move(function));
  return next_function_++;
}

void JitDump::Put(uint64_t start, const Place& place) {
  places_[start] = place;
  ++functions_[place.function].places;
}

// Cuts it out of the places there.
void JitDump::Clear(uint64_t start, uint64_t end, MonotonicTime when) {
  auto next = places_.lower_bound(start);
  if (next != places_.begin()) {
    const auto before = std::prev(next);
    const Place old = before->second;
    if (old.end > start) {
      before->second.end = start;
      if (old.end > end) Put(end, old);
      Place replaced = old;
      replaced.end = std::min(old.end, end);
      ++functions_[old.function].places;
      Retire(start, replaced, when);
    }
  }
  next = places_.lower_bound(start);
  while (next != places_.end() && next->first < end) {
    const uint64_t old_start = next->first;
    const Place old = next->second;
    next = places_.erase(next);
    Place replaced = old;
    replaced.end = std::min(old.end, end);
    if (old.end > end) Put(end, old);
    Retire(old_start, replaced, when);
    if (old.end >= end) break;  // nothing lies between it and the next: the last turn
  }
}

// Takes over one of its function's places.
void JitDump::Retire(uint64_t start, const Place& place, MonotonicTime until) {
  if (until <= place.since || until <= horizon_) {
    Release(place.function);
    return;
  }
  past_.push_back({.start = start, .place = place, .until = until});
}

void JitDump::Release(FunctionNumber number) {
  const auto function = functions_.find(number);
  if (--function->second.places > 0) return;
  function_bytes_ -= function->second.bytes();
  functions_.erase(function);
}

void JitDump::SortPast() {
  const auto is_before = [](const PastPlace& a, const PastPlace& b) {
    return std::pair(a.start, a.until) < std::pair(b.start, b.until);
  };
  if (past_reach_.size() != past_.size()) std::ranges::sort(past_, is_before);
  past_reach_.clear();
  past_reach_.reserve(past_.size());
  uint64_t reach = 0;
  for (const PastPlace& past : past_)
    past_reach_.push_back(reach = std::max(reach, past.place.end));
}

std::optional<JitDump::Found> JitDump::Find(Address address, MonotonicTime at) const {
  const Place* const present = PresentAt(address, at);
  const Place* const place = present != nullptr ? present : PastAt(address, at);
  if (place == nullptr) return std::nullopt;
  return Describe(*place, address);
}

const JitDump::Place* JitDump::PresentAt(Address address, MonotonicTime at) const {
  const auto next = places_.upper_bound(address.value());
  if (next == places_.begin()) return nullptr;
  const Place& place = std::prev(next)->second;
  return address.value() < place.end && place.since <= at ? &place : nullptr;
}

// From the places that begin nearest to it, one start at a time.
const JitDump::Place* JitDump::PastAt(Address address, MonotonicTime at) const {
  const auto begin = past_.begin();
  auto end = std::ranges::upper_bound(past_, address.value(), {}, &PastPlace::start);
  for (int steps = 0; end != begin && steps < kMostPastSteps; ++steps) {
    if (past_reach_[static_cast<size_t>(end - begin) - 1] <= address.value()) break;
    const auto first =
        std::ranges::lower_bound(begin, end, std::prev(end)->start, {}, &PastPlace::start);
    const auto place = std::ranges::upper_bound(first, end, at, {}, &PastPlace::until);
    if (place != end && place->place.since <= at && address.value() < place->place.end) {
      return &place->place;
    }
    end = first;
  }
  return nullptr;
}

std::optional<JitDump::Found> JitDump::Describe(const Place& place, Address address) const {
  const Function& function = functions_.find(place.function)->second;
  Found found{.name = function.texts.c_str(), .since = place.since};
  const uint64_t offset = address.value() - place.origin;
  const auto next = std::ranges::upper_bound(function.lines, offset, {}, &JitLine::offset);
  if (next == function.lines.begin()) return found;
  const JitLine& line = *std::prev(next);
  if (line.line == 0) return found;
  found.file = function.texts.c_str() + line.file;
  found.line = line.line;
  return found;
}

void JitDump::ForgetBefore(MonotonicTime horizon) {
  horizon_ = std::max(horizon_, horizon);
  const size_t before = past_.size();
  std::erase_if(past_, [this](const PastPlace& past) {
    if (past.until > horizon_) return false;
    Release(past.place.function);
    return true;
  });
  if (past_.size() == before) return;
  if (past_.size() < past_.capacity() / 4) past_.shrink_to_fit();
  past_reach_ = std::vector<uint64_t>();
  SortPast();
}

size_t JitDump::bytes() const {
  return function_bytes_ + functions_.size() * kFunctionBytes + places_.size() * kPlaceBytes +
         past_.capacity() * sizeof(PastPlace) + past_reach_.capacity() * sizeof(uint64_t);
}

void JitDump::ShrinkBelow(size_t memory) {
  const size_t wanted = memory / 4 * 3;
  ForgetPastBeyond(wanted / kPastShare);
  ForgetLinesBeyond(wanted);
  ForgetFunctionsBeyond(wanted);
  past_reach_ = std::vector<uint64_t>();
  SortPast();
}

// What was replaced first goes first. A function counts with each of its places, as if it were
// there for that alone.
void JitDump::ForgetPastBeyond(size_t bytes) {
  std::ranges::sort(past_, std::ranges::greater(), &PastPlace::until);
  size_t rest = bytes;
  const auto is_too_much = [&](const PastPlace& past) {
    const size_t needed = sizeof(PastPlace) + sizeof(uint64_t) + kFunctionBytes +
                          functions_.find(past.place.function)->second.bytes();
    if (needed > rest) return true;
    rest -= needed;
    return false;
  };
  const auto first = std::ranges::find_if(past_, is_too_much);
  for (auto past = first; past != past_.end(); ++past) Release(past->place.function);
  losses_.past_forgotten += static_cast<uint64_t>(past_.end() - first);
  past_.erase(first, past_.end());
  past_.shrink_to_fit();
}

void JitDump::ForgetLinesBeyond(size_t memory) {
  for (auto& [number, function] : functions_) {
    if (bytes() <= memory) return;
    if (function.lines.empty()) continue;
    function_bytes_ -= function.bytes();
    function.lines = std::vector<JitLine>();  // {} would keep the memory
    function.texts.resize(function.texts.find('\0') + 1);
    function.texts.shrink_to_fit();
    function_bytes_ += function.bytes();
    ++losses_.lines_forgotten;
  }
}

void JitDump::ForgetFunctionsBeyond(size_t memory) {
  size_t rest = bytes();
  auto oldest = functions_.begin();
  for (; oldest != functions_.end() && rest > memory; ++oldest) {
    const Function& function = oldest->second;
    rest -= std::min(rest, function.bytes() + kFunctionBytes + function.places * kPlaceBytes);
  }
  if (oldest == functions_.begin()) return;
  const FunctionNumber first =
      oldest == functions_.end() ? std::numeric_limits<uint64_t>::max() : oldest->first;
  std::erase_if(past_, [=](const PastPlace& past) { return past.place.function < first; });
  past_.shrink_to_fit();
  // In new maps, whose nodes are full.
  absl::btree_map<uint64_t, Place> places;
  for (const auto& [start, place] : places_) {
    if (place.function >= first) places.emplace_hint(places.end(), start, place);
  }
  std::swap(places, places_);
  absl::btree_map<FunctionNumber, Function> functions;
  for (auto& [number, function] : functions_) {
    if (number >= first) {
      functions.emplace_hint(functions.end(), number, std::move(function));
    } else {
      function_bytes_ -= function.bytes();
      ++losses_.forgotten;
    }
  }
  std::swap(functions, functions_);
}

}  // namespace pyrometer
