// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/table_cache.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "base/procfs.h"
#include "binary/vdso.h"
#include "symbolize/elf_symbols.h"
#include "unwind/table_compiler.h"

namespace pyrometer::oracle {
namespace {

MappedObject ReadObject(std::string name, const ElfFile& elf) {
  MappedObject object{
      .name = std::move(name), .segments = elf.segments(), .table = {}, .symbols = {}};
  if (Result<UnwindTable> table = CompileUnwindTable(elf)) {
    object.table = *std::move(table);
    object.place = object.table.empty() ? UnwindView::Place::kNoTable : UnwindView::Place::kTable;
  }
  if (Result<SymbolTable> symbols = ReadSymbolTable(elf)) object.symbols = *std::move(symbols);
  return object;
}

// By the mapping itself: right also for deleted files and other mount namespaces. Needs root.
Result<UniqueFd> OpenMapped(Pid pid, const FileMapping& range) {
  return Open(
      Procfs().Of(pid, fmt::format("map_files/{:x}-{:x}", range.start.value(), range.end.value())),
      O_RDONLY);
}

MappedObject ReadFileObject(Pid pid, const ProcMapping& mapping) {
  std::string name = mapping.file.path.substr(mapping.file.path.rfind('/') + 1);
  const Result<UniqueFd> fd = OpenMapped(pid, mapping.first_line());
  if (!fd) return {.name = std::move(name), .segments = {}, .table = {}, .symbols = {}};
  const Result<ElfFile> elf = ElfFile::Open(fd->get());
  if (elf) return ReadObject(std::move(name), *elf);
  return {.name = std::move(name),
          .segments = {},
          .place = UnwindView::Place::kNoTable,
          .table = {},
          .symbols = {}};
}

MappedObject ReadVdso() {
  const Result<ElfFile> elf = OpenVdso();
  if (elf) return ReadObject("[vdso]", *elf);
  return {.name = "[vdso]", .segments = {}, .table = {}, .symbols = {}};
}

}  // namespace

const MappedObject* TableCache::ObjectOf(Pid pid, const ProcMapping& mapping) {
  if (mapping.file.path == kVdsoPath) {
    if (!vdso_) vdso_ = ReadVdso();
    return &*vdso_;
  }
  if (IsAnonymous(mapping.file.path)) return nullptr;
  const FileKey key{mapping.file.major, mapping.file.minor, mapping.file.inode};
  const auto known = files_.find(key);
  if (known != files_.end()) return &known->second;
  return &files_.emplace(key, ReadFileObject(pid, mapping)).first->second;
}

}  // namespace pyrometer::oracle
