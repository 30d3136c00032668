// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/unique_fd.h"
#include "indexer/indexer.h"
#include "process/process_tracker.h"
#include "profiler/cold_view.h"
#include "profiler/debug_files.h"
#include "pyrometer/ids.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// Unwind tables of objects, made when they are asked for: of the object's own call frame
// information and, where that leaves out much, of its debug file's. Those used last stay, up to a
// number of bytes; another is made again, at 10 million rows a second. Thread-compatible.
class UnwindTables : public UnwindTableSource {
 public:
  UnwindTables(ProcessTracker& tracker, Indexer& indexer, size_t budget)
      : tracker_(tracker), indexer_(indexer), debug_files_(tracker, indexer), budget_(budget) {}

  // Empty if the object's file is gone, is no ELF file, or has no call frame information.
  std::shared_ptr<const UnwindTable> Of(ObjectId object) override;
  // True if Of() has it at hand.
  bool Has(ObjectId object) const { return by_object_.contains(object); }
  // Keeps the file open for the next call, until CloseFile().
  bool ReadCode(ObjectId object, ElfAddress address, std::span<std::byte> out) override;
  void CloseFile() { code_.reset(); }

 private:
  struct Entry {
    ObjectId object;
    std::shared_ptr<const UnwindTable> table;
  };
  using Entries = std::list<Entry>;  // used last in front

  std::shared_ptr<const UnwindTable> Make(ObjectId object);
  Result<UnwindTable> Read(ObjectId object);
  void Shrink();

  // The file whose code was read last.
  struct CodeFile {
    ObjectId object;
    UniqueFd file;
    std::vector<Segment> segments;
  };

  ProcessTracker& tracker_;
  Indexer& indexer_;
  DebugFiles debug_files_;
  const size_t budget_;
  Entries entries_;
  absl::flat_hash_map<ObjectId, Entries::iterator> by_object_;
  size_t bytes_ = 0;
  std::optional<CodeFile> code_;
};

}  // namespace pyrometer
