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

}  // namespace

std::shared_ptr<const UnwindTable> UnwindTables::Of(ObjectId object) {
  if (const auto known = by_object_.find(object); known != by_object_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    return known->second->table;
  }
  std::shared_ptr<const UnwindTable> table = Make(object);
  entries_.push_front({.object = object, .table = table});
  by_object_[object] = entries_.begin();
  bytes_ += BytesOf(*table);
  Shrink();
  return table;
}

std::shared_ptr<const UnwindTable> UnwindTables::Make(ObjectId object) {
  Result<UnwindTable> table = Read(object);
  if (!table) return std::make_shared<UnwindTable>();
  return std::make_shared<UnwindTable>(*std::move(table));
}

Result<UnwindTable> UnwindTables::Read(ObjectId object) {
  const std::optional<ObjectInfo> info = tracker_.Object(object);
  if (info && info->is_vdso) {
    ASSIGN_OR_RETURN(const ElfFile vdso, OpenVdso());  // the kernel's bytes: they may be believed
    return CompileUnwindTable(vdso);
  }
  ASSIGN_OR_RETURN(const UniqueFd file, tracker_.OpenObject(object));
  Result<UnwindTable> own = indexer_.Unwind(file.get());
  if (own && !LeavesOutMuch(*own)) return own;
  const Result<UniqueFd> debug_file = debug_files_.Open(object, file.get());
  if (!debug_file) return own;
  Result<UnwindTable> both = indexer_.Unwind(file.get(), debug_file->get());
  return both ? both : own;
}

bool UnwindTables::ReadCode(ObjectId object, ElfAddress address, std::span<std::byte> out) {
  if (!code_ || code_->object != object) {
    std::optional<ObjectInfo> info = tracker_.Object(object);
    Result<UniqueFd> file = tracker_.OpenObject(object);
    if (!info || !file) return false;
    code_ = {.object = object, .file = *std::move(file), .segments = std::move(info->segments)};
  }
  const std::optional<FileOffset> offset = ToFileOffset(code_->segments, address);
  return offset && ReadAt(code_->file.get(), offset->value(), out).has_value();
}

// The one asked for last stays, however large.
void UnwindTables::Shrink() {
  while (bytes_ > budget_ && entries_.size() > 1) {
    bytes_ -= BytesOf(*entries_.back().table);
    by_object_.erase(entries_.back().object);
    entries_.pop_back();
  }
}

}  // namespace pyrometer
