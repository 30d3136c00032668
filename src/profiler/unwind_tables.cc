// SPDX-License-Identifier: Apache-2.0
#include "profiler/unwind_tables.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "binary/segments.h"
#include "binary/vdso.h"
#include "profiler/spilled_rows.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

// In memory.
size_t BytesOf(const UnwindTable& table, size_t of_rows) {
  return sizeof(table) + of_rows + table.pages.size() * sizeof(UnwindTable::Page) +
         table.rules.size() * sizeof(pyro_unwind_rule) + table.exotic.size() * sizeof(ExoticRule);
}

// True if looking for a debug file may be worth it: one in eight of the 3,080 ELF files in /usr of
// a Debian machine. What the others leave out is mostly padding.
bool LeavesOutMuch(const UnwindTable& table) {
  return table.covered_text < table.text / 4 * 3;
}

// What the file itself says stays so. That it cannot be opened or read now may be over soon.
bool MayComeLater(const Error& error) {
  return error.code() != ErrorCode::kMalformed && error.code() != ErrorCode::kUnsupported &&
         error.code() != ErrorCode::kInvalid;
}

}  // namespace

std::shared_ptr<const UnwindTable> UnwindTables::Known(ObjectId object) {
  const auto known = by_object_.find(object);
  if (known == by_object_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, known->second);
  return known->second->table;
}

std::shared_ptr<const UnwindTable> UnwindTables::Of(ObjectId object) {
  {
    const absl::MutexLock lock(&mutex_);
    const auto is_free = [this, object]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !being_made_.contains(object);
    };
    mutex_.Await(absl::Condition(&is_free));
    if (std::shared_ptr<const UnwindTable> table = Known(object)) return table;
    if (failed_.Contains(object, clock_.Now())) return std::make_shared<UnwindTable>();
    being_made_.insert(object);
  }
  Result<Made> made = Read(object);
  const bool failed = !made.has_value();
  const bool may_come = failed && MayComeLater(made.error());
  const size_t bytes = failed ? 0 : made->bytes;
  const uint64_t spilled = failed ? 0 : made->spilled;
  auto table = std::make_shared<const UnwindTable>(failed ? UnwindTable() : std::move(made->table));
  Entries dropped;
  const absl::MutexLock lock(&mutex_);
  being_made_.erase(object);
  ++counters_.made;
  counters_.failed += failed ? 1 : 0;
  counters_.spills_failed += bytes > 0 ? 1 : 0;
  if (may_come) {
    failed_.Add(object, clock_.Now());
  } else {
    Keep({.object = object, .table = table, .bytes = BytesOf(*table, bytes), .spilled = spilled});
    dropped = TakeLeastUsed();
  }
  return table;
}

bool UnwindTables::HasFailed(ObjectId object) {
  const absl::MutexLock lock(&mutex_);
  return failed_.Contains(object, clock_.Now());
}

bool UnwindTables::Has(ObjectId object) const {
  const absl::MutexLock lock(&mutex_);
  return by_object_.contains(object);
}

void UnwindTables::Keep(Entry entry) {
  counters_.bytes += entry.bytes;
  counters_.spilled_bytes += entry.spilled;
  entries_.push_front(std::move(entry));
  by_object_[entries_.front().object] = entries_.begin();
}

// Returns what is to be destroyed without the lock: that gives room on the disk back. The one asked
// for last stays, however large.
UnwindTables::Entries UnwindTables::TakeLeastUsed() {
  Entries dropped;
  while (counters_.bytes > budget_ && entries_.size() > 1) DropLast(dropped);
  const uint64_t most_spilled = spill_ == nullptr ? 0 : spill_->share();
  while (counters_.spilled_bytes > most_spilled && entries_.size() > 1) DropLast(dropped);
  return dropped;
}

void UnwindTables::DropLast(Entries& dropped) {
  counters_.bytes -= entries_.back().bytes;
  counters_.spilled_bytes -= entries_.back().spilled;
  by_object_.erase(entries_.back().object);
  dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
}

UnwindTables::Counters UnwindTables::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters now = counters_;
  now.kept = entries_.size();
  return now;
}

Result<UnwindTables::Made> UnwindTables::Read(ObjectId object) {
  const std::optional<ObjectInfo> info = processes_.Object(object);
  if (info && info->is_vdso) {
    ASSIGN_OR_RETURN(const ElfFile vdso, OpenVdso());  // the kernel's bytes: they may be believed
    return Make(
        [&](const UnwindTableOptions& options) { return CompileUnwindTable(vdso, options); });
  }
  ASSIGN_OR_RETURN(const UniqueFd file, processes_.OpenObject(object));
  Result<Made> own =
      Make([&](const UnwindTableOptions& options) { return indexer_.Unwind(file.get(), options); });
  if (own && !LeavesOutMuch(own->table)) return own;
  const Result<UniqueFd> debug_file = debug_files_.Open(object, file.get());
  if (!debug_file) return own;
  Result<Made> both = Make([&](const UnwindTableOptions& options) {
    return indexer_.Unwind(file.get(), debug_file->get(), options);
  });
  return both ? std::move(both) : std::move(own);
}

// With its rows in the spill file, as far as there is room.
Result<UnwindTables::Made> UnwindTables::Make(const Maker& make) {
  const auto rows = std::make_shared<SpilledRows>(spill_);
  ASSIGN_OR_RETURN(UnwindTable table, make({.stop = stopping_.get_token(), .rows = rows.get()}));
  if (!table.empty()) table.stored = rows;
  return Made{.table = std::move(table), .bytes = rows->bytes(), .spilled = rows->spilled()};
}

bool UnwindTables::ReadCode(ObjectId object, ElfAddress address, std::span<std::byte> out) {
  const absl::MutexLock lock(&code_mutex_);
  if (!code_ || code_->object != object) {
    std::optional<ObjectInfo> info = processes_.Object(object);
    Result<UniqueFd> file = processes_.OpenObject(object);
    if (!info || !file) return false;
    code_ = {.object = object, .file = *std::move(file), .segments = std::move(info->segments)};
  }
  const std::optional<FileOffset> offset = ToFileOffset(code_->segments, address);
  return offset && ReadAt(code_->file.get(), offset->value(), out).has_value();
}

void UnwindTables::CloseFile() {
  const absl::MutexLock lock(&code_mutex_);
  code_.reset();
}

}  // namespace pyrometer
