// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/spill_file.h"
#include "base/unique_fd.h"
#include "indexer/indexer.h"
#include "process/process_knowledge.h"
#include "profiler/cold_view.h"
#include "profiler/debug_files.h"
#include "profiler/recently_missed.h"
#include "pyrometer/ids.h"
#include "pyrometer/unwind_table.h"

namespace pyrometer {

// Unwind tables of objects, compiled on demand from the object's own call frame information and, if
// that leaves out much, from its debug file's. Their rows are kept out of memory, in the spill
// file, as long as that has room. What is in memory is kept up to a number of bytes, the most
// recently used tables; others are compiled again, at 10 million rows a second.
//
// Thread-safe. Threads compile different tables in parallel; a thread that asks for one being
// compiled waits for it.
class UnwindTables : public UnwindTableSource {
 public:
  struct Counters {
    uint64_t made = 0;           // including repeats
    uint64_t failed = 0;         // of these: not ELF, or the file could not be read
    uint64_t kept = 0;           // now
    uint64_t bytes = 0;          // of these, in memory
    uint64_t spilled_bytes = 0;  // likewise, in the spill file
    uint64_t spills_failed = 0;  // tables with rows in memory: the spill file is full or absent
  };

  // After so long a file that could not be read is tried again.
  static constexpr std::chrono::minutes kRetry{1};
  static constexpr size_t kMostFailed = 16384;

  // All but `procfs` must outlive this.
  struct Parts {
    ProcessKnowledge& processes;
    Indexer& indexer;
    const Clock& clock;
    std::shared_ptr<SpillFile> spill{};  // null: there is none
    Procfs procfs{};                     // where the host's root is
  };

  UnwindTables(const Parts& parts, size_t budget)
      : processes_(parts.processes),
        indexer_(parts.indexer),
        clock_(parts.clock),
        spill_(parts.spill),
        debug_files_(parts.processes, parts.indexer, parts.clock, parts.procfs),
        budget_(budget) {}

  // Empty if the object's file is gone, is not ELF, or has no call frame information. A file that
  // could not be read is tried again after kRetry.
  std::shared_ptr<const UnwindTable> Of(ObjectId object) override;
  bool Has(ObjectId object) const override;
  bool HasFailed(ObjectId object) override;
  // Keeps the file open for the next call, until CloseFile().
  bool ReadCode(ObjectId object, ElfAddress address, std::span<std::byte> out) override;
  void CloseFile() override;

  // Makes no more tables, and does not finish the one that is being made: they come out empty.
  // For the end, when nobody needs them any more. Any thread.
  void Stop() { stopping_.request_stop(); }

  Counters counters() const;

 private:
  struct Entry {
    ObjectId object;
    std::shared_ptr<const UnwindTable> table;
    size_t bytes = 0;      // in memory
    uint64_t spilled = 0;  // in the spill file
  };
  struct Made {
    UnwindTable table;
    size_t bytes = 0;      // of its rows in memory
    uint64_t spilled = 0;  // of its rows in the spill file
  };
  using Maker = absl::FunctionRef<Result<UnwindTable>(const UnwindTableOptions&)>;
  using Entries = std::list<Entry>;  // most recently used first

  std::shared_ptr<const UnwindTable> Known(ObjectId object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result<Made> Read(ObjectId object);
  Result<Made> Make(const Maker& make);
  void Keep(Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entries TakeLeastUsed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropLast(Entries& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The file that ReadCode() read last.
  struct CodeFile {
    ObjectId object;
    UniqueFd file;
    std::vector<Segment> segments;
  };

  ProcessKnowledge& processes_;
  Indexer& indexer_;
  const Clock& clock_;
  const std::shared_ptr<SpillFile> spill_;
  DebugFiles debug_files_;
  const size_t budget_;
  std::stop_source stopping_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_set<ObjectId> being_made_ ABSL_GUARDED_BY(mutex_);
  RecentlyMissed failed_ ABSL_GUARDED_BY(mutex_){kRetry, kMostFailed};
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<ObjectId, Entries::iterator> by_object_ ABSL_GUARDED_BY(mutex_);
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex code_mutex_;
  std::optional<CodeFile> code_ ABSL_GUARDED_BY(code_mutex_);
};

}  // namespace pyrometer
