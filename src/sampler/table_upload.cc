// SPDX-License-Identifier: Apache-2.0
#include "sampler/table_upload.h"

#include <algorithm>
#include <span>
#include <utility>

namespace pyrometer {
namespace {

constexpr pyro_table_page kEmptyPage{};
// A count that is not 0 tells it from an empty page.
constexpr pyro_table_page kEvictedPage{
    .chunk = PYRO_PAGE_EVICTED, .first = 0, .count = 1, .used = 0, .pad = 0};

}  // namespace

TableUpload::TableUpload(const TableMemory& memory, ChunkMemory& chunks, size_t max_chunks)
    : memory_(memory),
      chunks_(chunks, std::min<size_t>(max_chunks, PYRO_MAX_CHUNKS)),
      rules_(memory.rules),
      room_(static_cast<uint32_t>(memory.tables.size()),
            static_cast<uint32_t>(memory.pages.size())) {}

std::optional<uint32_t> TableUpload::Hold(ObjectId object, MonotonicTime now) {
  const absl::MutexLock lock(&mutex_);
  if (const auto known = objects_.find(object); known != objects_.end()) {
    ++known->second.holders;
    return known->second.slot;
  }
  Reuse(now);
  const std::optional<uint32_t> slot = room_.TakeSlot();
  if (!slot) {
    ++refused_;
    return std::nullopt;
  }
  Object& entry = objects_[object];
  entry.slot = *slot;
  entry.holders = 1;
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
  Leave(object, it->second, now);
  objects_.erase(it);
}

std::vector<ObjectId> TableUpload::TakeWanted(MonotonicTime now) {
  chunks_.Reuse(now);
  const absl::MutexLock lock(&mutex_);
  Reuse(now);
  has_new_ = false;
  std::vector<ObjectId> wanted;
  for (auto& [id, object] : objects_) {
    if (object.requested || object.state != State::kAbsent) continue;
    object.requested = true;
    wanted.push_back(id);
  }
  if (std::exchange(pages_came_free_, false)) TakeRefused(wanted);
  if (!lacks_rows_) return wanted;
  for (const std::shared_ptr<Table>& table : clock_) {
    if (table->requested != ObjectId(0) || !IsMissed(*table)) continue;
    table->announced = false;
    table->requested = UserOf(*table);
    if (table->requested != ObjectId(0)) wanted.push_back(table->requested);
  }
  return wanted;
}

// The small ones first, before those that gave way to them.
void TableUpload::TakeRefused(std::vector<ObjectId>& wanted) {
  const size_t first = wanted.size();
  for (auto& [id, object] : objects_) {
    if (object.requested || object.state != State::kRefused) continue;
    object.requested = true;
    wanted.push_back(id);
  }
  std::ranges::sort(std::span(wanted).subspan(first), {},
                    [this](ObjectId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                      return objects_.at(id).refused_pages;
                    });
}

// True if samples went to user space because rows of it had been evicted.
bool TableUpload::IsMissed(const Table& table) const {
  for (size_t i = 0; i < table.ranges.size(); ++i) {
    const pyro_table_page& page = memory_.pages[table.first_page + i];
    if (page.chunk == PYRO_PAGE_EVICTED && page.used != 0) return true;
  }
  return false;
}

std::vector<bool> TableUpload::UsedSlots() const {
  std::vector<bool> used(memory_.tables.size());
  absl::flat_hash_map<const Table*, bool> tables;  // each has many pages, and perhaps many objects
  const absl::MutexLock lock(&mutex_);
  for (const auto& [id, object] : objects_) {
    if (object.state != State::kLoaded) {
      used[object.slot] = object.state != State::kAbsent;
      continue;
    }
    const auto [known, is_new] = tables.try_emplace(object.table.get());
    if (is_new) known->second = IsUsed(*object.table);
    used[object.slot] = known->second;
  }
  return used;
}

bool TableUpload::IsUsed(const Table& table) const {
  const auto pages = memory_.pages.subspan(table.first_page, table.ranges.size());
  return std::ranges::any_of(pages, [](const pyro_table_page& page) { return page.used != 0; });
}

bool TableUpload::NoteUsed(ObjectId object) {
  const absl::MutexLock lock(&mutex_);
  const auto known = objects_.find(object);
  return known != objects_.end() && !std::exchange(known->second.used, true);
}

// One whose file still has this table.
ObjectId TableUpload::UserOf(const Table& table) const {
  for (const ObjectId user : table.users) {
    if (!objects_.at(user).replaced) return user;
  }
  return ObjectId(0);
}

bool TableUpload::Load(ObjectId id, const UnwindTable& table, MonotonicTime now) {
  const std::optional<Missing> missing = HoldToLoad(id, table, now);
  if (!missing) return false;
  if (missing->pages.empty()) return true;
  Table& into = *missing->table;
  size_t left_out = 0;
  for (const uint32_t page : missing->pages) left_out += LoadPage(into, table, page, now);
  const absl::MutexLock lock(&mutex_);
  into.is_loading = false;
  if (into.users.empty()) Unload(into, now);
  // What is evicted now has room when it is out of quarantine; till then no more is evicted for it.
  const size_t resting = chunks_.resting();
  if (left_out > resting) Evict(left_out - resting, now);
  return true;
}

// The pages whose rows are to be loaded now. If there are any, the table is kept until they are.
std::optional<TableUpload::Missing> TableUpload::HoldToLoad(ObjectId id, const UnwindTable& table,
                                                            MonotonicTime now) {
  const absl::MutexLock lock(&mutex_);
  const auto it = objects_.find(id);
  if (it == objects_.end()) return std::nullopt;
  Reuse(now);
  Object& object = it->second;
  object.requested = false;
  const bool again = object.state == State::kLoaded;
  if (again && object.table->requested == id) object.table->requested = ObjectId(0);
  if (object.digest && table.empty()) return Missing();  // it cannot be read now
  object.replaced = object.digest && *object.digest != table.digest;
  if (object.replaced) return Missing();
  if (!table.empty()) object.digest = table.digest;
  const bool is_there = again || Find(table) != nullptr;
  if (!again && !Begin(id, object, table, now)) return Missing();
  const bool by_page = is_there || table.row_count() > kMostAtOnce;
  Missing missing{.table = object.table, .pages = {}};
  for (uint32_t i = 0; i < missing.table->ranges.size() && i < table.pages.size(); ++i) {
    const pyro_table_page& page = memory_.pages[missing.table->first_page + i];
    if (table.pages[i].row_count == 0) continue;
    if (by_page && (page.chunk != PYRO_PAGE_EVICTED || page.used == 0)) continue;
    missing.pages.push_back(i);
  }
  lacks_rows_ |= by_page;
  missing.table->is_loading = !missing.pages.empty();
  return missing;
}

bool TableUpload::Need(ObjectId id, ElfAddress address) {
  const absl::MutexLock lock(&mutex_);
  const auto it = objects_.find(id);
  if (it == objects_.end() || it->second.state != State::kLoaded) return false;
  Table& table = *it->second.table;
  const uint64_t first = memory_.tables[it->second.slot].first_text_page;
  const uint64_t number = (address.value() >> PYRO_UNWIND_PAGE_SHIFT) - first;
  if (number >= table.ranges.size()) return false;
  pyro_table_page& page = memory_.pages[table.first_page + number];
  if (page.chunk != PYRO_PAGE_EVICTED) return false;
  page.used = 1;  // the kernel side marks only the page it stopped at
  return table.requested == ObjectId(0) && !std::exchange(table.announced, true);
}

// Gives the object its table: that of another object, or one for which there is room for everything
// but the rows, whose pages are evicted so far.
bool TableUpload::Begin(ObjectId id, Object& object, const UnwindTable& table, MonotonicTime now) {
  if (table.empty()) {
    object.state = State::kEmpty;
    memory_.SetState(object.slot, table.unread ? PYRO_TABLE_UNREAD : PYRO_TABLE_EMPTY);
    return false;
  }
  std::shared_ptr<Table> found = Find(table);
  if (found == nullptr) found = Enter(table, now);
  if (found == nullptr) {
    object.state = State::kRefused;
    object.refused_pages = static_cast<uint32_t>(table.pages.size());
    ++refused_;
    MakeRoomFor(object.refused_pages, now);
    return false;
  }
  object.state = State::kLoaded;
  object.table = std::move(found);
  object.table->users.insert(id);
  pyro_object_table& entry = memory_.tables[object.slot];
  entry.first_text_page = static_cast<uint32_t>(table.first_page);
  entry.first_page = object.table->first_page;
  entry.page_count = static_cast<uint32_t>(table.pages.size());
  memory_.SetState(object.slot, table.sparse ? PYRO_TABLE_SPARSE : PYRO_TABLE_LOADED);
  return true;
}

// Has the table with the most idle pages give way, if it has more of them than are needed. Its own
// pages are free after a quarantine; until then no other gives way.
void TableUpload::MakeRoomFor(uint32_t pages, MonotonicTime now) {
  if (room_.AreAtRest(pages)) return;
  Table* largest = nullptr;
  size_t most_idle = pages;
  for (const std::shared_ptr<Table>& table : clock_) {
    const size_t idle = table->ranges.size() > most_idle ? IdlePages(*table) : 0;
    if (table->is_loading || idle <= most_idle) continue;
    most_idle = idle;
    largest = table.get();
  }
  if (largest != nullptr) GiveWay(*largest, now);
}

// Those that no sample has used.
size_t TableUpload::IdlePages(const Table& table) const {
  const auto pages = memory_.pages.subspan(table.first_page, table.ranges.size());
  return static_cast<size_t>(std::ranges::count(pages, 0, &pyro_table_page::used));
}

// Its objects are refused from now on, and wanted again when pages come free.
void TableUpload::GiveWay(Table& table, MonotonicTime now) {
  std::shared_ptr<Table> kept;  // until all of it is done
  for (const ObjectId user : table.users) {
    Object& object = objects_.at(user);
    memory_.SetState(object.slot, PYRO_TABLE_ABSENT);
    object.state = State::kRefused;
    object.refused_pages = static_cast<uint32_t>(table.ranges.size());
    kept = std::move(object.table);
  }
  ++evicted_tables_;
  memory_.ForgetKnownRules();  // which would not mark its pages as used, once they are back
  Unload(table, now);
}

std::shared_ptr<TableUpload::Table> TableUpload::Find(const UnwindTable& table) {
  if (table.content == 0) return nullptr;
  const auto known = contents_.find(table.content);
  return known == contents_.end() ? nullptr : known->second;
}

// Null if there is no room.
std::shared_ptr<TableUpload::Table> TableUpload::Enter(const UnwindTable& table,
                                                       MonotonicTime now) {
  const auto count = static_cast<uint32_t>(table.pages.size());
  const std::optional<uint32_t> first = room_.TakePages(count);
  if (!first) return nullptr;
  auto entered = std::make_shared<Table>();
  entered->content = table.content;
  entered->first_page = *first;
  entered->ranges.assign(count, {});
  entered->rules = rules_.Acquire(table.rules, now);
  for (uint32_t i = 0; i < count; ++i) {
    memory_.SetPage(*first + i, table.pages[i].row_count == 0 ? kEmptyPage : kEvictedPage);
  }
  if (table.content != 0) contents_[table.content] = entered;
  clock_.push_back(entered);
  return entered;
}

// Returns the number of rows that the budget had no room for. REQUIRES: into.is_loading.
size_t TableUpload::LoadPage(Table& into, const UnwindTable& table, uint32_t page,
                             MonotonicTime now) {
  // Not under the lock: they may have to be read from a file.
  std::vector<pyro_unwind_row> buffer;
  const std::span<const pyro_unwind_row> own = table.RowsOf(page, buffer);
  if (own.empty()) {
    const absl::MutexLock lock(&mutex_);
    lacks_rows_ = true;
    memory_.SetPage(into.first_page + page, kEvictedPage);  // tried again for the next sample
    return 0;
  }
  const std::vector<pyro_unwind_row> rows = KernelRows(into, own);
  const Result<RowChunks::Range> range = chunks_.Store(rows, now);
  const absl::MutexLock lock(&mutex_);
  lacks_rows_ |= !range;
  if (!range && range.error().code() == ErrorCode::kExhausted) return rows.size();
  if (!range) {
    memory_.SetPage(into.first_page + page, kEvictedPage);  // likewise
    return 0;
  }
  into.ranges[page] = *range;
  // In use only if a sample has met it.
  const uint8_t used = memory_.pages[into.first_page + page].used;
  memory_.SetPage(into.first_page + page, {.chunk = range->chunk,
                                           .first = range->first,
                                           .count = range->count,
                                           .used = used,
                                           .pad = 0});
  return 0;
}

// A table's rows, with the numbers that their rules have in the kernel.
std::vector<pyro_unwind_row> TableUpload::KernelRows(const Table& into,
                                                     std::span<const pyro_unwind_row> own) {
  const absl::MutexLock lock(&mutex_);
  std::vector<pyro_unwind_row> rows(own.begin(), own.end());
  for (pyro_unwind_row& row : rows) row.rule = into.rules[row.rule];
  return rows;
}

// The clock algorithm, a table at a time: pages that were used since the hand last passed get
// another round.
void TableUpload::Evict(size_t rows, MonotonicTime now) {
  size_t evicted = 0;
  for (size_t passed = 0; evicted < rows && passed < 2 * clock_.size(); ++passed) {
    clock_.push_back(std::move(clock_.front()));
    clock_.pop_front();
    evicted += EvictFrom(*clock_.back(), now);
  }
  // A rule that is known marks no page as used.
  memory_.ForgetKnownRules();
}

size_t TableUpload::EvictFrom(Table& table, MonotonicTime now) {
  size_t evicted = 0;
  for (uint32_t i = 0; i < table.ranges.size(); ++i) {
    RowChunks::Range& range = table.ranges[i];
    pyro_table_page& page = memory_.pages[table.first_page + i];
    if (range.count == 0) continue;
    if (page.used != 0) {
      page.used = 0;
      continue;
    }
    memory_.SetPage(table.first_page + i, kEvictedPage);
    chunks_.Retire(range, now);
    evicted += range.count;
    range = {};
    ++evicted_;
  }
  return evicted;
}

// Takes the object's table from it.
void TableUpload::Leave(ObjectId id, Object& object, MonotonicTime now) {
  memory_.SetState(object.slot, PYRO_TABLE_ABSENT);
  memory_.ForgetKnownRules();
  room_.GiveBackSlot(object.slot, now);
  if (object.table == nullptr) return;
  Table& table = *object.table;
  table.users.erase(id);
  if (table.requested == id) table.requested = ObjectId(0);  // another user may answer for it
  if (table.users.empty() && !table.is_loading) Unload(table, now);
}

void TableUpload::Unload(Table& table, MonotonicTime now) {
  for (const RowChunks::Range& range : table.ranges) {
    if (range.count > 0) chunks_.Retire(range, now);
  }
  rules_.Release(table.rules, now);
  room_.GiveBackPages(table.first_page, static_cast<uint32_t>(table.ranges.size()), now);
  if (table.content != 0) contents_.erase(table.content);
  std::erase_if(clock_, [&table](const auto& entry) { return entry.get() == &table; });
}

void TableUpload::Reuse(MonotonicTime now) {
  const TableRoom::Freed freed = room_.Reuse(now);
  pages_came_free_ |= freed.pages;
  // Once more than in Leave(): arm64 may load a table before the generation, so a program that
  // still found the old table may have noted its rule under the number that was new then.
  if (freed.slots) memory_.ForgetKnownRules();
}

TableUpload::Counters TableUpload::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters counters{.contents = clock_.size(),
                    .rows = chunks_.rows(),
                    .chunks = chunks_.chunks(),
                    .rules = rules_.size(),
                    .evicted_pages = evicted_,
                    .evicted_tables = evicted_tables_,
                    .refused_objects = refused_,
                    .refused_rules = rules_.refused()};
  for (const auto& [id, object] : objects_) {
    if (object.state == State::kLoaded) ++counters.tables;
  }
  return counters;
}

}  // namespace pyrometer
