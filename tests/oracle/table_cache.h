// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/proc_maps.h"
#include "pyrometer/mapping.h"
#include "symbolize/symbol_table.h"
#include "unwind/unwinder.h"

namespace pyrometer::oracle {

// One mapped file: what unwinding and naming need of it.
struct MappedObject {
  std::string name;  // last part of its path
  std::vector<Segment> segments;
  UnwindView::Place place = UnwindView::Place::kUnknown;
  UnwindTable table;  // of kTable
  SymbolTable symbols;
};

// The objects of all processes that are looked at, each read and compiled once.
class TableCache {
 public:
  // What `mapping` of the process shows; null for anonymous memory.
  const MappedObject* ObjectOf(Pid pid, const ProcMapping& mapping);

 private:
  struct FileKey {
    uint32_t major = 0;
    uint32_t minor = 0;
    uint64_t inode = 0;
    auto operator<=>(const FileKey&) const = default;
  };

  std::map<FileKey, MappedObject> files_;
  std::optional<MappedObject> vdso_;
};

}  // namespace pyrometer::oracle
