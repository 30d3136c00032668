// SPDX-License-Identifier: Apache-2.0
#include "profiler/unwind_tables.h"

#include <utility>

#include "base/file.h"
#include "binary/segments.h"
#include "binary/vdso.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

size_t BytesOf(const UnwindTable& table) {
  return sizeof(table) + table.rows.size() * sizeof(pyro_unwind_row) +
         table.pages.size() * sizeof(UnwindTable::Page) +
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
  Result<UnwindTable> read = Read(object);
  const bool failed = !read.has_value();
  const bool may_come = failed && MayComeLater(read.error());
  auto table = std::make_shared<const UnwindTable>(failed ? UnwindTable() : *std::move(read));
  const absl::MutexLock lock(&mutex_);
  being_made_.erase(object);
  ++counters_.made;
  counters_.failed += failed ? 1 : 0;
  if (may_come) {
    failed_.Add(object, clock_.Now());
  } else {
    Keep(object, table);
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

// The one asked for last stays, however large.
void UnwindTables::Keep(ObjectId object, std::shared_ptr<const UnwindTable> table) {
  counters_.bytes += BytesOf(*table);
  entries_.push_front({.object = object, .table = std::move(table)});
  by_object_[object] = entries_.begin();
  while (counters_.bytes > budget_ && entries_.size() > 1) {
    counters_.bytes -= BytesOf(*entries_.back().table);
    by_object_.erase(entries_.back().object);
    entries_.pop_back();
  }
}

UnwindTables::Counters UnwindTables::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters now = counters_;
  now.kept = entries_.size();
  return now;
}

Result<UnwindTable> UnwindTables::Read(ObjectId object) {
  const std::optional<ObjectInfo> info = processes_.Object(object);
  if (info && info->is_vdso) {
    ASSIGN_OR_RETURN(const ElfFile vdso, OpenVdso());  // the kernel's bytes: they may be believed
    return CompileUnwindTable(vdso);
  }
  ASSIGN_OR_RETURN(const UniqueFd file, processes_.OpenObject(object));
  Result<UnwindTable> own = indexer_.Unwind(file.get(), stopping_.get_token());
  if (own && !LeavesOutMuch(*own)) return own;
  const Result<UniqueFd> debug_file = debug_files_.Open(object, file.get());
  if (!debug_file) return own;
  Result<UnwindTable> both = indexer_.Unwind(file.get(), debug_file->get(), stopping_.get_token());
  return both ? both : own;
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
