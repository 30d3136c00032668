// SPDX-License-Identifier: Apache-2.0
// The engine's user space without its threads and without a kernel: what happens comes as values,
// and what it would write into BPF maps goes into memory.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "foreign/in_process_indexer.h"
#include "foreign/question_threads.h"
#include "indexer/artifact_store.h"
#include "process/address_space_sink.h"
#include "process/event_merger.h"
#include "process/process_history.h"
#include "profiler/indexed_headers.h"
#include "profiler/object_symbols.h"
#include "profiler/table_loader.h"
#include "profiler/unwind_tables.h"
#include "profiler/window_namer.h"
#include "pyrometer/profile.h"
#include "sampler/mapping_upload.h"
#include "sampler/row_chunks.h"
#include "sampler/table_upload.h"

namespace pyrometer::scale {

class SimulatedClock : public Clock {
 public:
  MonotonicTime Now() const override { return now_; }
  // Runs as fast, so that no file is newer than what happens after it was written.
  std::chrono::system_clock::time_point WallNow() const override {
    return wall_begin_ + Between(begin_, now_);
  }
  void MoveTo(MonotonicTime when) { now_ = when; }

 private:
  const std::chrono::system_clock::time_point wall_begin_ = std::chrono::system_clock::now();
  const MonotonicTime begin_ = MonotonicNow();
  MonotonicTime now_ = begin_;
};

// The kernel's tables and mappings, in memory but for the map of processes, which needs the right
// to load BPF programs.
class KernelSide final : public AddressSpaceSink, public TableTarget {
 public:
  KernelSide(const Clock& clock, uint32_t processes);

  bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
               std::span<const PublishedMapping> sorted) override;
  void Withdraw(Pid pid) override;
  void ReleaseWithdrawn() override;
  void Sweep(std::span<const Pid> living) override { mappings_.Sweep(living, clock_.Now()); }
  std::vector<Pid> TakeMissed() override;
  bool AwaitRoom() override { return mappings_.AwaitRoom(clock_.Now()); }

  std::vector<ObjectId> TakeWanted() override { return tables_.TakeWanted(clock_.Now()); }
  bool Load(ObjectId object, const UnwindTable& table) override {
    return tables_.Load(object, table, clock_.Now());
  }
  void Need(ObjectId object, ElfAddress address) override { tables_.Need(object, address); }
  void Wait(std::chrono::milliseconds most) override;
  void Wake() override;

  // What a tick of this process finds at `address`.
  std::optional<ObjectMapping> Find(Pid pid, Address address) const;

  MappingUpload::Counters mappings() const { return mappings_.counters(); }
  TableUpload::Counters tables() const { return tables_.counters(); }

 private:
  class Chunks;

  const Clock& clock_;
  std::vector<pyro_object_table> object_tables_;
  std::vector<pyro_table_page> pages_;
  uint32_t table_generation_ = 0;
  std::vector<pyro_unwind_rule> rules_;
  std::vector<pyro_mapping> pool_;
  const std::unique_ptr<ChunkMemory> chunks_;
  UniqueFd processes_;
  TableUpload tables_;
  MappingUpload mappings_;
  absl::flat_hash_map<Pid, std::vector<PublishedMapping>> published_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;  // guarded by mutex_
};

class Engine {
 public:
  Engine(const Procfs& procfs, SimulatedClock& clock, uint32_t processes);

  // Reads /proc, when records were lost as well.
  void Scan(std::span<const TaskRecord> tasks);
  // From the ring of any CPU.
  void Add(ProcessEvent event) { merger_.Add(std::move(event)); }
  // Everything up to `when`, which becomes the present.
  void Pump(MonotonicTime when);
  std::shared_ptr<const NamedWindow> Name(Window window);
  // Waits until no file is being read, as then only what is kept is open: how many are read at this
  // very moment is up to the machine.
  void AwaitFiles() const;

  // CPU time since the last call.
  struct Spent {
    uint64_t events = 0;
    double on_events = 0;  // in seconds, likewise
    uint64_t windows = 0;
    double on_windows = 0;
  };
  Spent TakeSpent() { return std::exchange(spent_, {}); }

  struct Held {
    ProcessCounters processes;
    size_t living = 0;
    MappingUpload::Counters mappings;
    TableUpload::Counters kernel_tables;
    ArtifactStore::Counters store;
    SymbolizerCounts names;
  };
  Held held() const;

  const KernelSide& kernel() const { return kernel_; }

 private:
  SimulatedClock& clock_;
  const std::shared_ptr<Indexer> indexer_ = std::make_shared<InProcessIndexer>();
  QuestionThreads workers_{clock_};
  KernelSide kernel_;
  EventMerger merger_;
  ProcessHistory history_;
  ArtifactStore store_;
  DebugFiles debug_files_;
  UnwindTables tables_;
  TableLoader loader_;
  ObjectSymbols symbols_;
  ObjectSymbols debug_info_;
  WindowNamer namer_;
  Spent spent_;
};

}  // namespace pyrometer::scale
