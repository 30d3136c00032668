// SPDX-License-Identifier: Apache-2.0
#include "profiler/kernel_machine.h"

#include <sys/resource.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/cpu_list.h"
#include "foreign/direct_foreign_files.h"
#include "foreign/in_process_indexer.h"
#include "foreign/sandboxed_indexer.h"
#include "profiler/kernel_memory.h"

namespace pyrometer {
namespace {

// Object files of ended processes are held open; the usual soft limit of 1024 is low for that.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::vector<TaskRecord>> TasksOf(const MappingTarget& sampler) {
  ASSIGN_OR_RETURN(const std::vector<pyro_task_record> tasks, sampler.ListTasks());
  std::vector<TaskRecord> records;
  records.reserve(tasks.size());
  for (const pyro_task_record& task : tasks) {
    records.push_back({.pid = Pid(task.pid),
                       .tid = Tid(task.tid),
                       .start = StartTime(task.start_boottime_ns / PYRO_CLOCK_TICK_NS),
                       .exec = ExecId(task.exec_id),
                       .read_at = MonotonicTime(task.now_ns)});
  }
  return records;
}

}  // namespace

Result<std::unique_ptr<KernelMachine>> KernelMachine::Open(const Profiler::Options& options) {
  RaiseFileLimit();
  ASSIGN_OR_RETURN(const std::vector<uint32_t> cpus, OnlineCpus(options.procfs));
  const KernelMemory memory =
      KernelMemory::For(KernelMemory::Machine::This(cpus),
                        options.event.counted() ? KernelMemory::kOfCounted : options.frequency,
                        options.longest_window);
  ASSIGN_OR_RETURN(
      std::unique_ptr<Sampler> sampler,
      Sampler::Load({.event = options.event,
                     .frequency = options.frequency,
                     .kernel_stacks = options.kernel_stacks,
                     .filter = options.filter,
                     .procfs = options.procfs,
                     .sizes = memory.maps,
                     .table_budget = options.table_budget.value_or(memory.table_budget)},
                    options.clock));
  std::shared_ptr<ForeignFiles> files = options.files;
  if (files == nullptr) files = std::make_shared<DirectForeignFiles>();
  std::unique_ptr<KernelMachine> machine(
      new KernelMachine(options, std::move(files), std::move(sampler)));
  Result<std::shared_ptr<SpillFile>> spill = SpillFile::Open({});
  if (spill) {
    machine->spill_ = *std::move(spill);
  } else {
    machine->log_.Failed("keeping unwind tables out of memory", spill.error());
  }
  const MappingTarget& tasks = machine->sampler_->mappings();
  const ProcessTracker::Options tracking{.clock = options.clock,
                                         .procfs = options.procfs,
                                         .ring_bytes = memory.event_ring_bytes,
                                         .keep = 2 * options.longest_window,
                                         .log = &machine->log_,
                                         .observer = options.observer,
                                         .files = machine->files_};
  ASSIGN_OR_RETURN(
      machine->tracker_,
      ProcessTracker::Start(tracking, std::make_shared<IndexedHeaders>(machine->indexer_),
                            machine->mappings_, [&tasks] { return TasksOf(tasks); }));
  return machine;
}

std::shared_ptr<Indexer> KernelMachine::IndexerOf(const std::shared_ptr<ReaderPool>& readers) {
  if (readers == nullptr) return std::make_shared<InProcessIndexer>();
  return std::make_shared<SandboxedIndexer>(readers);
}

Profiler::Machine KernelMachine::parts() {
  return {.windows = sampler_->windows(),
          .tables = sampler_->tables(),
          .cold = sampler_->cold(),
          .processes = *tracker_,
          .indexer = indexer_,
          .question_threads = question_threads_,
          .files = files_,
          .clock = clock_,
          .log = log_,
          .sampler_counters = [this] { return sampler_->counters(); },
          .kernel_symbols = procfs_,
          .procfs = procfs_,
          .spill = spill_,
          .readers = readers_};
}

Result<std::unique_ptr<Profiler>> Profiler::Open(const Options& options) {
  // Hidden kernel symbols (kptr_restrict) cost names, not samples; `doctor` explains it.
  KernelSymbols symbols = KernelSymbols::Load(options.procfs).value_or(KernelSymbols());
  ASSIGN_OR_RETURN(std::shared_ptr<KernelMachine> kernel, KernelMachine::Open(options));
  Machine machine = kernel->parts();
  machine.inlines = options.inlines;
  machine.demangling = options.demangling;
  machine.dwarf = options.dwarf;
  machine.name_again = options.name_again;
  return std::make_unique<Profiler>(machine, std::move(symbols), options.longest_window,
                                    std::move(kernel));
}

}  // namespace pyrometer
