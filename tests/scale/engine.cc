// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/engine.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <stdexcept>
#include <utility>

#include "foreign/direct_foreign_files.h"
#include "tests/shared/eventually.h"

namespace pyrometer::scale {
namespace {

// The files are small, so what is kept for them is as well: full on the first day.
constexpr size_t kTableBytes = size_t{128} << 10;
constexpr size_t kSymbolBytes = size_t{128} << 10;
constexpr size_t kKernelBytes = size_t{64} << 20;  // as in Profiler
constexpr size_t kPool = size_t{1} << 20;

double CpuSeconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace

class KernelSide::Chunks : public ChunkMemory {
 public:
  Result<void> Make(uint16_t slot) override {
    rows_[slot].resize(PYRO_CHUNK_ROWS);
    return {};
  }
  void Remove(uint16_t slot) override { rows_.erase(slot); }
  Result<void> Write(uint16_t slot, uint16_t first,
                     std::span<const pyro_unwind_row> rows) override {
    std::ranges::copy(rows, rows_.at(slot).begin() + first);
    return {};
  }

 private:
  std::map<uint16_t, std::vector<pyro_unwind_row>> rows_;
};

KernelSide::KernelSide(const Clock& clock, uint32_t processes)
    : clock_(clock),
      object_tables_(PYRO_MAX_TABLES),
      pages_(PYRO_MAX_TABLE_PAGES),
      rules_(PYRO_MAX_RULES),
      pool_(kPool),
      chunks_(std::make_unique<Chunks>()),
      processes_(bpf_map_create(BPF_MAP_TYPE_HASH, "scale_processes", sizeof(uint32_t),
                                sizeof(pyro_process), processes, nullptr)),
      tables_({object_tables_, pages_, rules_, table_generation_}, *chunks_,
              kKernelBytes / sizeof(pyro_unwind_chunk)),
      mappings_(pool_, processes_.get(), tables_, [] { return Result<void>(); }) {}

bool KernelSide::Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
                         std::span<const PublishedMapping> sorted) {
  published_[process.pid].assign(sorted.begin(), sorted.end());
  return mappings_.Publish(process, exec, exec_pages, sorted, clock_.Now());
}

void KernelSide::Withdraw(Pid pid) {
  mappings_.Withdraw(pid, clock_.Now());
  published_.erase(pid);
}

void KernelSide::ReleaseWithdrawn() {
  mappings_.ReleaseWithdrawn(clock_.Now());
}

std::vector<Pid> KernelSide::TakeMissed() {
  return mappings_.TakeMissed(clock_.Now());
}

void KernelSide::Wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return woken_; });
  woken_ = false;
}

void KernelSide::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

std::optional<ObjectMapping> KernelSide::Find(Pid pid, Address address) const {
  const auto process = published_.find(pid);
  if (process == published_.end()) return std::nullopt;
  for (const auto& [mapping, shifting] : process->second) {
    if (mapping.Contains(address)) return mapping;
  }
  return std::nullopt;
}

Engine::Engine(const Procfs& procfs, SimulatedClock& clock, uint32_t processes)
    : clock_(clock),
      kernel_(clock, processes),
      history_({.clock = clock_, .procfs = procfs}, std::make_shared<IndexedHeaders>(indexer_),
               kernel_),
      store_({.indexer = indexer_, .workers = workers_}, kTableBytes),
      debug_files_({.processes = history_,
                    .indexer = indexer_,
                    .files = std::make_shared<DirectForeignFiles>(),
                    .workers = workers_,
                    .clock = clock_,
                    .procfs = procfs}),
      tables_({.processes = history_,
               .indexer = indexer_,
               .workers = workers_,
               .store = store_,
               .debug_files = debug_files_,
               .clock = clock_},
              [this] { kernel_.Wake(); }),
      loader_(kernel_, tables_, clock_),
      symbols_(store_, clock_),
      debug_info_(store_, clock_, debug_files_),
      namer_({.store = store_,
              .symbols = symbols_,
              .debug_info = &debug_info_,
              .indexer = indexer_,
              .clock = clock_},
             KernelSymbols(), {.symbol_tables = {.idle_bytes = kSymbolBytes}}) {}

void Engine::Scan(std::span<const TaskRecord> tasks) {
  if (!history_.Scan(tasks)) throw std::runtime_error("/proc cannot be listed");
}

void Engine::Pump(MonotonicTime when) {
  const double before = CpuSeconds();
  clock_.MoveTo(when);
  const std::vector<ProcessEvent> events = merger_.Release(when);
  history_.Apply(events);
  if (kernel_.AwaitRoom()) history_.PublishMissed();
  loader_.LoadAll(std::chrono::hours(1));
  spent_.events += events.size();
  spent_.on_events += CpuSeconds() - before;
}

std::shared_ptr<const NamedWindow> Engine::Name(Window window) {
  const double before = CpuSeconds();
  ResolvedWindow resolved = history_.Resolve(std::move(window));
  tables_.Forget(resolved.unused);
  auto named = namer_.Name(std::move(resolved));
  ++spent_.windows;
  spent_.on_windows += CpuSeconds() - before;
  return named;
}

void Engine::AwaitFiles() const {
  const auto rest = [this] {
    const QuestionCounters jobs = workers_.counters();
    return jobs.done + jobs.late + jobs.refused == jobs.posted && jobs.telling == 0;
  };
  if (!Eventually(rest)) throw std::runtime_error("files are being read without end");
}

Engine::Held Engine::held() const {
  return {.processes = history_.counters(),
          .living = history_.process_count(),
          .mappings = kernel_.mappings(),
          .kernel_tables = kernel_.tables(),
          .store = store_.counters(),
          .names = namer_.counts()};
}

}  // namespace pyrometer::scale
