// SPDX-License-Identifier: Apache-2.0
#include "profiler/pipeline.h"

#include <utility>
#include <vector>

namespace pyrometer {
namespace {

Result<std::vector<TaskRecord>> TasksOf(const MappingTarget& mappings) {
  ASSIGN_OR_RETURN(const std::vector<pyro_task_record> tasks, mappings.ListTasks());
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

Result<std::unique_ptr<Pipeline>> Pipeline::Start(Sampler& sampler, const Procfs& procfs,
                                                  std::chrono::nanoseconds keep) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(sampler));
  // Hidden kernel symbols (kptr_restrict) cost names, not samples; `doctor` explains it.
  KernelSymbols kernel = KernelSymbols::Load(procfs).value_or(KernelSymbols());
  ASSIGN_OR_RETURN(pipeline->tracker_,
                   ProcessTracker::Start({.procfs = procfs, .keep = keep}, pipeline->headers_,
                                         pipeline->mappings_,
                                         [&sampler] { return TasksOf(sampler.mappings()); }));
  pipeline->objects_ = std::make_unique<TrackedObjects>(*pipeline->tracker_, pipeline->indexer_);
  pipeline->cold_ =
      std::make_unique<ColdUnwinder>(sampler, *pipeline->tracker_, pipeline->indexer_);
  pipeline->perf_maps_ = std::make_unique<TrackedPerfMaps>(*pipeline->tracker_);
  pipeline->symbolizer_ = std::make_unique<Symbolizer>(*pipeline->objects_, *pipeline->perf_maps_,
                                                       std::move(kernel), Symbolizer::Options{});
  return pipeline;
}

Result<ResolvedWindow> Pipeline::TakeWindow(bool last) {
  ASSIGN_OR_RETURN(Window window, sampler_.windows().Drain());
  if (last) cold_->Finish();
  cold_->MoveInto(window);
  ResolvedWindow resolved{.window = tracker_->Resolve(std::move(window)), .kernel_events = {}};
  resolved.kernel_events = tracker_->TakeKernelSymbolEvents();
  return resolved;
}

NamedWindow Pipeline::Name(ResolvedWindow resolved) {
  for (const KernelSymbolEvent& event : resolved.kernel_events) symbolizer_->Apply(event);
  const MonotonicTime end = resolved.window.end;
  NamedWindow named = symbolizer_->Name(std::move(resolved.window));
  tracker_->CloseUnusedFiles(end);
  return named;
}

}  // namespace pyrometer
