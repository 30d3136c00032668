// SPDX-License-Identifier: Apache-2.0
#include "sampler/table_upload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "sampler/quarantine.h"

namespace pyrometer {
namespace {

constexpr pyro_table_page kEmptyPage{};
// A count that is not 0 tells it from an empty page.
constexpr pyro_table_page kEvictedPage{
    .chunk = PYRO_PAGE_EVICTED, .first = 0, .count = 1, .used = 0, .pad = 0};

}  // namespace

TableUpload::TableUpload(const Memory& memory, ChunkMemory& chunks, size_t max_chunks)
    : memory_(memory),
      chunks_(chunks, std::min<size_t>(max_chunks, PYRO_MAX_CHUNKS)),
      rules_(memory.rules),
      free_slots_(static_cast<uint32_t>(memory.tables.size())),
      free_pages_(static_cast<uint32_t>(memory.pages.size())) {
  free_slots_.Take(1);  // table 0 is for objects that have no place
}

std::optional<uint32_t> TableUpload::Hold(ObjectId object, MonotonicTime now) {
  const absl::MutexLock lock(&mutex_);
  if (const auto known = objects_.find(object); known != objects_.end()) {
    ++known->second.holders;
    return known->second.slot;
  }
  Reuse(now);
  const std::optional<uint32_t> slot = free_slots_.Take(1);
  if (!slot) {
    ++refused_;
    return std::nullopt;
  }
  Object& entry = objects_[object];
  entry.slot = *slot;
  entry.holders = 1;
  clock_.push_back(object);
  has_new_ = true;
  return slot;
}

bool TableUpload::HasNew() const {
  const absl::MutexLock lock(&mutex_);
  return has_new_;
}

void TableUpload::Release(ObjectId object, MonotonicTime now) {
  const absl::MutexLock lock(&mutex_);
  const auto it = objects_.find(object);
  if (it == objects_.end() || --it->second.holders > 0) return;
  Unload(it->second, now);
  objects_.erase(it);
  std::erase(clock_, object);
}

std::vector<ObjectId> TableUpload::TakeWanted(MonotonicTime now) {
  chunks_.Reuse(now);
  const absl::MutexLock lock(&mutex_);
  const bool pages_came_free = Reuse(now);
  has_new_ = false;
  std::vector<ObjectId> wanted;
  for (auto& [id, object] : objects_) {
    if (object.requested || !IsWanted(object, pages_came_free)) continue;
    object.requested = true;
    object.announced = false;
    wanted.push_back(id);
  }
  return wanted;
}

bool TableUpload::IsWanted(const Object& object, bool pages_came_free) const {
  switch (object.state) {
    case State::kAbsent:
      return true;
    case State::kLoaded:
      return !object.replaced && IsMissed(object);
    case State::kEmpty:
      return false;
    case State::kRefused:
      return pages_came_free;
  }
  return false;
}

// True if samples went to user space because rows of it had been evicted.
bool TableUpload::IsMissed(const Object& object) const {
  if (!lacks_rows_) return false;
  for (size_t i = 0; i < object.ranges.size(); ++i) {
    const pyro_table_page& page = memory_.pages[object.first_page + i];
    if (page.chunk == PYRO_PAGE_EVICTED && page.used != 0) return true;
  }
  return false;
}

bool TableUpload::Load(ObjectId id, const UnwindTable& table, MonotonicTime now) {
  const std::optional<std::vector<uint32_t>> pages = HoldToLoad(id, table, now);
  if (!pages) return false;
  if (pages->empty()) return true;
  size_t left_out = 0;
  for (const uint32_t page : *pages) left_out += LoadPage(id, table, page, now);
  Release(id, now);
  // What is evicted now has room when it is out of quarantine; till then no more is evicted for it.
  const size_t resting = chunks_.resting();
  if (left_out <= resting) return true;
  const absl::MutexLock lock(&mutex_);
  Evict(left_out - resting, now);
  return true;
}

// The pages whose rows are to be loaded now. If there are any, the object is held until they are.
std::optional<std::vector<uint32_t>> TableUpload::HoldToLoad(ObjectId id, const UnwindTable& table,
                                                             MonotonicTime now) {
  const absl::MutexLock lock(&mutex_);
  const auto it = objects_.find(id);
  if (it == objects_.end()) return std::nullopt;
  Reuse(now);
  Object& object = it->second;
  object.requested = false;
  const bool again = object.state == State::kLoaded;
  const bool by_page = again || table.row_count() > kMostAtOnce;
  if (again && table.empty()) return std::vector<uint32_t>();  // it cannot be read now
  object.replaced = again && table.digest != object.digest;
  if (object.replaced) return std::vector<uint32_t>();
  if (!again && !Begin(object, table, now)) return std::vector<uint32_t>();
  std::vector<uint32_t> pages;
  for (uint32_t i = 0; i < object.ranges.size() && i < table.pages.size(); ++i) {
    const pyro_table_page& page = memory_.pages[object.first_page + i];
    if (table.pages[i].row_count == 0) continue;
    if (by_page && (page.chunk != PYRO_PAGE_EVICTED || page.used == 0)) continue;
    pages.push_back(i);
  }
  lacks_rows_ |= by_page;
  if (!pages.empty()) ++object.holders;
  return pages;
}

bool TableUpload::Need(ObjectId id, ElfAddress address) {
  const absl::MutexLock lock(&mutex_);
  const auto it = objects_.find(id);
  if (it == objects_.end() || it->second.state != State::kLoaded) return false;
  Object& object = it->second;
  const uint64_t first = memory_.tables[object.slot].first_text_page;
  const uint64_t number = (address.value() >> PYRO_UNWIND_PAGE_SHIFT) - first;
  if (number >= object.ranges.size()) return false;
  pyro_table_page& page = memory_.pages[object.first_page + number];
  if (page.chunk != PYRO_PAGE_EVICTED) return false;
  page.used = 1;  // the kernel side marks only the page it stopped at
  return !object.requested && !std::exchange(object.announced, true);
}

// Finds room for everything but the rows, whose pages are evicted so far.
bool TableUpload::Begin(Object& object, const UnwindTable& table, MonotonicTime now) {
  pyro_object_table& entry = memory_.tables[object.slot];
  std::atomic_ref<__u32> state(entry.state);
  if (table.empty()) {
    object.state = State::kEmpty;
    state.store(PYRO_TABLE_EMPTY, std::memory_order_release);
    return false;
  }
  const auto count = static_cast<uint32_t>(table.pages.size());
  const std::optional<uint32_t> first = free_pages_.Take(count);
  if (!first) {
    object.state = State::kRefused;
    ++refused_;
    return false;
  }
  object.state = State::kLoaded;
  object.digest = table.digest;
  object.first_page = *first;
  object.ranges.assign(count, {});
  object.rules = rules_.Acquire(table.rules, now);
  for (uint32_t i = 0; i < count; ++i) {
    SetPage(*first + i, table.pages[i].row_count == 0 ? kEmptyPage : kEvictedPage);
  }
  entry.first_text_page = static_cast<uint32_t>(table.first_page);
  entry.first_page = *first;
  entry.page_count = count;
  state.store(table.sparse ? PYRO_TABLE_SPARSE : PYRO_TABLE_LOADED, std::memory_order_release);
  return true;
}

// Returns the number of rows that the budget had no room for. REQUIRES: the object is held.
size_t TableUpload::LoadPage(ObjectId id, const UnwindTable& table, uint32_t page,
                             MonotonicTime now) {
  // Not under the lock: they may have to be read from a file.
  std::vector<pyro_unwind_row> buffer;
  const std::span<const pyro_unwind_row> own = table.RowsOf(page, buffer);
  if (own.empty()) {
    const absl::MutexLock lock(&mutex_);
    lacks_rows_ = true;
    SetPage(objects_.at(id).first_page + page, kEvictedPage);  // tried again for the next sample
    return 0;
  }
  const std::vector<pyro_unwind_row> rows = KernelRows(id, own);
  const Result<RowChunks::Range> range = chunks_.Store(rows, now);
  const absl::MutexLock lock(&mutex_);
  Object& object = objects_.at(id);
  lacks_rows_ |= !range;
  if (!range && range.error().code() == ErrorCode::kExhausted) return rows.size();
  if (!range) {
    SetPage(object.first_page + page, kEvictedPage);  // to be tried when the next sample needs it
    return 0;
  }
  object.ranges[page] = *range;
  SetPage(
      object.first_page + page,
      {.chunk = range->chunk, .first = range->first, .count = range->count, .used = 1, .pad = 0});
  return 0;
}

// An object's rows, with the numbers that their rules have in the kernel.
std::vector<pyro_unwind_row> TableUpload::KernelRows(ObjectId id,
                                                     std::span<const pyro_unwind_row> own) {
  const absl::MutexLock lock(&mutex_);
  const Object& object = objects_.at(id);
  std::vector<pyro_unwind_row> rows(own.begin(), own.end());
  for (pyro_unwind_row& row : rows) row.rule = object.rules[row.rule];
  return rows;
}

// The clock algorithm, an object at a time: pages that were used since the hand last passed get
// another round.
void TableUpload::Evict(size_t rows, MonotonicTime now) {
  size_t evicted = 0;
  for (size_t passed = 0; evicted < rows && passed < 2 * clock_.size(); ++passed) {
    const ObjectId id = clock_.front();
    clock_.pop_front();
    clock_.push_back(id);
    evicted += EvictFrom(objects_.at(id), now);
  }
}

size_t TableUpload::EvictFrom(Object& object, MonotonicTime now) {
  size_t evicted = 0;
  for (uint32_t i = 0; i < object.ranges.size(); ++i) {
    RowChunks::Range& range = object.ranges[i];
    pyro_table_page& page = memory_.pages[object.first_page + i];
    if (range.count == 0) continue;
    if (page.used != 0) {
      page.used = 0;
      continue;
    }
    SetPage(object.first_page + i, kEvictedPage);
    chunks_.Retire(range, now);
    evicted += range.count;
    range = {};
    ++evicted_;
  }
  return evicted;
}

void TableUpload::Unload(Object& object, MonotonicTime now) {
  std::atomic_ref<__u32>(memory_.tables[object.slot].state)
      .store(PYRO_TABLE_ABSENT, std::memory_order_release);
  for (const RowChunks::Range& range : object.ranges) {
    if (range.count > 0) chunks_.Retire(range, now);
  }
  rules_.Release(object.rules, now);
  retired_.push_back({.when = now,
                      .slot = object.slot,
                      .first_page = object.first_page,
                      .page_count = static_cast<uint32_t>(object.ranges.size())});
}

// True if pages came free.
bool TableUpload::Reuse(MonotonicTime now) {
  bool pages_came_free = false;
  while (!retired_.empty() && IsOver(kReaderQuarantine, retired_.front().when, now)) {
    const Retired& retired = retired_.front();
    free_slots_.GiveBack(retired.slot, 1);
    if (retired.page_count > 0) {
      free_pages_.GiveBack(retired.first_page, retired.page_count);
      pages_came_free = true;
    }
    retired_.pop_front();
  }
  return pages_came_free;
}

// In one store: the sampling program reads it in one load.
void TableUpload::SetPage(uint32_t index, const pyro_table_page& page) {
  static_assert(sizeof(pyro_table_page) == sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &page, sizeof(bits));
  auto* const at = reinterpret_cast<uint64_t*>(&memory_.pages[index]);
  std::atomic_ref<uint64_t>(*at).store(bits, std::memory_order_release);
}

TableUpload::Counters TableUpload::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters counters{.rows = chunks_.rows(),
                    .chunks = chunks_.chunks(),
                    .rules = rules_.size(),
                    .evicted_pages = evicted_,
                    .refused_objects = refused_,
                    .refused_rules = rules_.refused()};
  for (const auto& [id, object] : objects_) {
    if (object.state == State::kLoaded) ++counters.tables;
  }
  return counters;
}

}  // namespace pyrometer
