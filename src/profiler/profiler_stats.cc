// SPDX-License-Identifier: Apache-2.0
#include "profiler/profiler_stats.h"

namespace pyrometer {
namespace {

// A new counter needs an entry here; the static_asserts below fail until the number is right.
template <typename Counters>
constexpr size_t kNumbers = sizeof(Counters) / sizeof(uint64_t);

class StatList {
 public:
  void Add(std::string_view name, uint64_t value, std::string_view help) {
    stats_.push_back({.name = name, .label = {}, .label_value = {}, .value = value, .help = help});
  }
  // One of several that differ in a label.
  void Add(std::string_view name, std::string_view label, std::string_view label_value,
           uint64_t value, std::string_view help) {
    stats_.push_back(
        {.name = name, .label = label, .label_value = label_value, .value = value, .help = help});
  }
  std::vector<Stat> Take() && { return std::move(stats_); }

 private:
  std::vector<Stat> stats_;
};

std::string_view HelpOf(Accounting::Lost reason) {
  switch (reason) {
    case Accounting::kStackMapFull:
      return "ticks lost: the kernel's map of stacks was full";
    case Accounting::kCountMapFull:
      return "ticks lost: the kernel's map of counts was full";
    case Accounting::kNoMemory:
      return "ticks lost: the kernel had no memory for a map entry";
    case Accounting::kMapBusy:
      return "ticks lost: the tick interrupted an update of the same map bucket";
    case Accounting::kWindowDropped:
      return "ticks lost: their window was dropped, because naming or a consumer did not keep up";
    case Accounting::kInternal:
    case Accounting::kLostReasons:
      break;
  }
  return "ticks lost: an internal error";
}

void AddTicks(const Accounting& ticks, StatList& list) {
  static_assert(kNumbers<Accounting> == 4 + Accounting::kLostReasons);
  constexpr std::string_view kName = "ticks_total";
  list.Add(kName, "outcome", "exported", ticks.exported, "ticks that became samples");
  list.Add(kName, "outcome", "idle", ticks.idle, "ticks that hit an idle CPU");
  list.Add(kName, "outcome", "filtered", ticks.filtered,
           "ticks of tasks that were not asked for or are denied");
  for (size_t i = 0; i < ticks.lost.size(); ++i) {
    const auto reason = static_cast<Accounting::Lost>(i);
    list.Add(kName, "outcome", Name(reason), ticks.lost[i], HelpOf(reason));
  }
  list.Add(
      "ticks_undelivered_total", ticks.undelivered,
      "ticks of a clock that were due but never delivered by the kernel (parked virtual CPUs)");
}

void AddSampler(const SamplerCounters& sampler, StatList& list) {
  static_assert(kNumbers<SamplerCounters> == 6 + 9 + 7 + 7);
  list.Add("sampled_cpus", sampler.sampled_cpus, "CPUs that are sampled now");
  list.Add("cpu_failures_total", sampler.cpu_failures,
           "failures to sample a CPU; tried again every second");
  list.Add("denied_cgroups", sampler.denied_cgroups, "cgroups that are denied now");
  list.Add("missed_children_total", sampler.missed_children,
           "children of wanted processes that were not followed: too many at once");
  list.Add("tick_time_us_total",
           static_cast<uint64_t>(sampler.tick_time / std::chrono::microseconds(1)),
           "microseconds that ticks took of the CPUs, but for those that hit an idle CPU");
  list.Add("drained_ticks_total", sampler.drained_ticks,
           "ticks read from the kernel's maps, without cold samples");
  const ColdCounters& cold = sampler.cold;
  constexpr std::string_view kCold = "cold_samples_total";
  list.Add(kCold, "reason", "unknown_process", cold.unknown_process,
           "samples left to user space: their process was not known yet, or had changed");
  list.Add(kCold, "reason", "unknown_place", cold.unknown_place,
           "samples left to user space: a mapping or an unwind table was not there yet");
  list.Add(kCold, "reason", "exotic_rule", cold.exotic_rule,
           "samples left to user space: an unwind rule that the kernel side does not evaluate");
  list.Add(kCold, "reason", "hand_written", cold.hand_written,
           "samples left to user space: code without call frame information");
  list.Add(kCold, "reason", "map_full", cold.unwound,
           "samples that are unwound, but went to user space because a window map was full");
  list.Add("cold_samples_refused_total", cold.refused,
           "samples for user space to unwind that were too many at once; their stacks are marked");
  list.Add("cold_bytes_waiting", sampler.cold_bytes_waiting,
           "bytes of cold samples in the kernel's ring buffer now");
}

void AddKernelTables(const SamplerCounters& sampler, StatList& list) {
  const TableUpload::Counters& tables = sampler.tables;
  list.Add("kernel_tables", tables.tables, "objects with an unwind table in the kernel now");
  list.Add("kernel_table_contents", tables.contents,
           "distinct tables of these: files of the same content share one");
  list.Add("kernel_table_rows", tables.rows, "rows of unwind tables in the kernel now");
  list.Add("kernel_table_chunks", tables.chunks, "chunks of 256 KiB that hold these rows now");
  list.Add("kernel_table_rules", tables.rules, "distinct unwind rules in the kernel now");
  list.Add("kernel_table_evicted_pages_total", tables.evicted_pages,
           "pages of unwind tables evicted for lack of room; loaded again when needed");
  list.Add("kernel_tables_evicted_total", tables.evicted_tables,
           "tables with many unused pages that gave way to others in the list of pages");
  list.Add("kernel_table_refused_objects_total", tables.refused_objects,
           "objects that did not fit into the kernel's list of tables");
  list.Add("kernel_table_refused_rules_total", tables.refused_rules,
           "unwind rules that did not fit; user space evaluates them");
  const MappingUpload::Counters& mappings = sampler.mappings;
  list.Add("kernel_processes", mappings.processes, "processes whose mappings the kernel knows now");
  list.Add("kernel_processes_unplaced", mappings.unplaced,
           "processes whose mappings have no room in the kernel now; user space unwinds them");
  list.Add("kernel_mappings", mappings.mappings, "places of the kernel's mapping pool in use now");
  list.Add("kernel_mappings_room", mappings.room, "places that the mapping pool has");
  list.Add("kernel_processes_refused_total", mappings.refused,
           "times that a process's mappings found no room; tried again when ticks hit it");
  list.Add("kernel_processes_evicted_total", mappings.evicted,
           "processes that no tick used, whose mappings made room for others");
  list.Add("kernel_processes_swept_total", mappings.swept,
           "processes that the kernel side still knew after their ends had gone unnoticed");
}

void AddWindows(const ProfilerStats& stats, StatList& list) {
  static_assert(kNumbers<SamplingLoop::Counters> == 6);
  static_assert(kNumbers<ConsumerCounters> == 3);
  const SamplingLoop::Counters& windows = stats.windows;
  list.Add("windows_total", windows.windows, "windows taken from the kernel");
  list.Add("windows_early_total", windows.early_windows,
           "windows ended early because a kernel map filled up");
  list.Add("windows_unwanted_total", windows.unwanted_windows,
           "windows for which no consumer was attached");
  list.Add("drains_failed_total", windows.failed_drains,
           "failures to take a window; nothing is lost, its samples come with the next one");
  list.Add("cpu_looks_failed_total", windows.failed_cpu_looks,
           "failures to look for CPUs that came or went; tried again");
  list.Add("changes_total", windows.changes, "changes of frequency or filter while sampling");
  list.Add("windows_waiting", stats.windows_waiting, "windows waiting to be named now");
  list.Add("windows_not_named_total", stats.windows_not_named,
           "windows dropped because naming did not keep up");
  list.Add("windows_consumed_total", stats.consumers.consumed,
           "windows that the attached consumers have finished");
  list.Add("windows_not_consumed_total", stats.consumers.dropped,
           "windows dropped because an attached consumer did not keep up");
  list.Add("windows_waiting_for_consumers", stats.consumers.waiting,
           "windows waiting for consumers now");
}

void AddUnwinding(const ProfilerStats& stats, StatList& list) {
  static_assert(kNumbers<ColdUnwinder::Counters> == 8);
  static_assert(kNumbers<UnwindTables::Counters> == 2);
  static_assert(kNumbers<TableLoader::Counters> == 4);
  list.Add("cold_samples_unwound_total", stats.cold.unwound, "cold samples unwound");
  list.Add("cold_samples_over_budget_total", stats.cold.over_budget,
           "of these: cut, because they exceeded the cost limit");
  list.Add("cold_samples_code_late_total", stats.cold.code_late,
           "of these: cut and marked, because the code around a call did not come in time");
  list.Add("cold_samples_given_up_total", stats.cold.given_up,
           "cold samples not unwound by the deadline at the end; their stacks are marked");
  list.Add("cold_samples_not_kept_total", stats.cold.no_room,
           "cold samples for which there was no room until a table was made; likewise");
  list.Add("cold_samples_waiting", stats.cold.waiting, "cold samples waiting to be unwound now");
  list.Add("cold_samples_put_aside", stats.cold.put_aside,
           "of these: until an unwind table is made");
  list.Add("cold_samples_done", stats.cold.done, "unwound cold samples waiting for a window now");
  list.Add(
      "tables_failed_total", stats.tables.failed,
      "objects without an unwind table: their file was gone, did not answer or is no ELF file");
  list.Add("tables_pending", stats.tables.pending, "objects now whose unwind table is being made");
  list.Add("tables_loaded_total", stats.loading.loaded,
           "unwind tables handed to the kernel, including repeats");
  list.Add("tables_retried_total", stats.loading.retried,
           "of these: the object's file could not be read a minute before");
  list.Add("tables_wanted", stats.loading.waiting,
           "objects whose table waits to be loaded into the kernel, as of the last look");
  list.Add("tables_awaited", stats.loading.pending, "of these: the table is being made");
}

void AddStore(const ArtifactStore::Counters& store, StatList& list) {
  static_assert(kNumbers<ArtifactStore::Counters> == 11);
  list.Add("tables_made_total", store.tables_made, "unwind tables compiled, including repeats");
  list.Add("symbol_tables_made_total", store.symbols_made,
           "symbol tables made of files, including repeats");
  list.Add("artifacts_shared_total", store.shared,
           "files whose content was known from another file, after a comparison");
  list.Add("artifacts_failed_total", store.failed,
           "times that nothing could be made of a file: gone, unreadable or no ELF file");
  list.Add("artifacts_unanswered_total", store.unanswered,
           "files that were not read, since too many waited");
  list.Add("artifacts_pending", store.pending, "files being read, or waiting for that, now");
  list.Add("tables_kept", store.tables_kept, "unwind tables kept in user space now");
  list.Add("symbol_tables_kept", store.symbols_kept, "symbol tables kept now");
  list.Add("artifacts_kept_bytes", store.bytes, "bytes of both in memory");
  list.Add("artifacts_spilled_bytes", store.spilled_bytes, "bytes of both in the spill file");
  list.Add("artifact_spills_failed_total", store.spills_failed,
           "unwind tables with rows in memory because the spill file was full or not there");
}

void AddReaders(const ReaderPool::Counters& readers, StatList& list) {
  static_assert(kNumbers<ReaderPool::Counters> == 9);
  list.Add("reader_tasks_total", readers.tasks,
           "times that a sandboxed process was asked to read a file of a profiled program");
  list.Add("reader_tasks_late_total", readers.late, "of these: given up, and the process killed");
  list.Add("reader_tasks_died_total", readers.died,
           "of these: the process died, of it or otherwise");
  list.Add("reader_tasks_refused_total", readers.no_room,
           "files not read because others took all memory that readers may have");
  list.Add(
      "reader_tasks_over_cpu_total", readers.over_cpu,
      "files not read because their owner, or all, had spent the CPU time that readers may take");
  list.Add("reader_cpu_seconds_total", readers.cpu_us / 1'000'000, "CPU time of such tasks");
  list.Add("readers_started_total", readers.started, "such processes started");
  list.Add("readers", readers.living, "such processes now");
  list.Add("readers_memory_bytes", readers.reserved, "bytes that they may take, now");
}

void AddSpill(const SpillStats& spill, StatList& list) {
  static_assert(kNumbers<SpillStats> == 3);
  list.Add("spill_file_bytes", spill.bytes, "bytes of the spill file in use now");
  list.Add("spill_file_room_bytes", spill.room, "bytes that the spill file may take; 0: none");
  list.Add("spill_file_in_memory", spill.in_memory,
           "1 if the spill file is in memory, because no local disk could be written");
}

void AddProcessRecords(const ProcessCounters& processes, StatList& list) {
  constexpr std::string_view kName = "kernel_records_total";
  constexpr std::string_view kHelp = "records about processes from the kernel, by type";
  list.Add(kName, "type", "mmap", processes.mmap_records, kHelp);
  list.Add(kName, "type", "comm", processes.comm_records, kHelp);
  list.Add(kName, "type", "exec", processes.exec_records, kHelp);
  list.Add(kName, "type", "fork", processes.fork_records, kHelp);
  list.Add(kName, "type", "exit", processes.exit_records, kHelp);
  list.Add(kName, "type", "ksymbol", processes.ksymbol_records, kHelp);
  list.Add("kernel_records_lost_total", processes.lost_records,
           "records that did not fit into a ring; /proc is then read again");
  list.Add("kernel_records_malformed_total", processes.malformed_records,
           "records that could not be understood");
  list.Add("kernel_records_late_total", processes.late_records,
           "records that came after later ones had been applied");
  list.Add("kernel_symbols_dropped_total", processes.kernel_symbols_dropped,
           "symbols of BPF programs that nobody took in time");
}

void AddShares(const ProcessCounters& processes, StatList& list) {
  list.Add("remembered_processes_bytes", processes.remembered_bytes,
           "memory for processes, ended ones as well, and what they have mapped");
  list.Add("remembered_ended_processes", processes.remembered_ended,
           "ended processes that samples may still be of");
  list.Add("processes_forgotten_early_total", processes.processes_forgotten_early,
           "ended processes forgotten early: their users had more than their share of memory");
  list.Add("processes_passed_over_total", processes.processes_passed_over,
           "living processes of such users of which nothing is kept; their frames stay addresses");
  list.Add("users_over_share_total", processes.users_over_share,
           "times a user's processes came to take more than their share of that memory");
}

void AddPublishes(const ProcessCounters& processes, StatList& list) {
  list.Add("publishes_total", processes.publishes,
           "mapping arrays handed to the kernel, which had room for them");
  list.Add("publishes_put_off_total", processes.publishes_put_off,
           "changes of processes that had been published often lately, handed over together");
  constexpr std::string_view kLatency = "publish_latency_us";
  constexpr std::string_view kLatencyHelp =
      "microseconds from a change of what a process has mapped until the kernel knew it, since the "
      "start";
  list.Add(kLatency, "quantile", "0.5", processes.publish_us_median, kLatencyHelp);
  list.Add(kLatency, "quantile", "0.99", processes.publish_us_99_percent, kLatencyHelp);
  list.Add(kLatency, "quantile", "1", processes.publish_us_longest, kLatencyHelp);
}

void AddProcReading(const ProcessCounters& processes, StatList& list) {
  list.Add("proc_scans_total", processes.scans, "scans of all of /proc");
  list.Add("proc_resyncs_total", processes.resyncs, "of these: because records had been lost");
  list.Add("proc_resyncs_put_off_total", processes.resyncs_put_off,
           "of these: some time later, so soon after another");
  list.Add("proc_scans_failed_total", processes.scans_failed,
           "scans that could not list /proc; tried again");
  list.Add("task_snapshots_failed_total", processes.snapshots_failed,
           "failures to read exec ids; nothing new is unwound in the kernel meanwhile");
  list.Add("cpu_rescans_failed_total", processes.cpu_rescans_failed,
           "failures to follow CPUs that came or went; tried again");
  list.Add("processes_unreadable_total", processes.processes_unreadable,
           "failures to read a living process in /proc; tried again");
  list.Add("process_answers_late_total", processes.process_answers_late,
           "of these: /proc did not say in time what is mapped, as if the process held the lock");
  list.Add("processes_unanswered", processes.processes_unanswered,
           "processes that have yet to say what they have mapped; asked again after pauses");
}

void AddProcesses(const ProcessCounters& processes, StatList& list) {
  static_assert(kNumbers<ProcessCounters> == 51);
  AddProcReading(processes, list);
  AddPublishes(processes, list);
  list.Add("rechecks_total", processes.rechecks,
           "times one process's mappings were read again because the kernel disagreed");
  list.Add("rechecks_changed_total", processes.rechecks_changed, "of these: the kernel was right");
  list.Add("rechecks_refused_total", processes.rechecks_refused,
           "rechecks not done: too many for one process or user");
  list.Add(
      "programs_over_budget_total", processes.programs_over_budget,
      "programs with more executable mappings than are kept, or than their users have room for; "
      "the others' frames stay addresses");
  list.Add(
      "mappings_passed_over_total", processes.mappings_passed_over,
      "new mappings of these programs, and of processes passed over, of which nothing is kept");
  AddShares(processes, list);
  list.Add("objects", processes.objects, "files that were ever seen mapped executable");
  list.Add("objects_unopened_total", processes.objects_unopened,
           "of these: gone, unreadable or another file when it was to be opened");
  list.Add("objects_refused_total", processes.objects_refused,
           "files that got no object id, because none was left");
  list.Add("objects_waiting", processes.objects_waiting,
           "questions about files that their file systems have not answered yet");
  list.Add("file_questions_total", processes.file_questions,
           "questions to file systems of profiled programs");
  list.Add("file_questions_late_total", processes.file_questions_late,
           "of these: no answer in time");
  list.Add("file_questions_refused_total", processes.file_questions_refused,
           "of these: not asked, as the file system was late with another one or too many wait, or "
           "nobody could be found to answer");
  list.Add("jit_dumps_refused_total", processes.jit_dumps_refused,
           "times a jitdump was not held, as so many of its user or of all are");
  list.Add("openers_stuck", processes.openers_stuck,
           "processes that open files, or read /proc, and hang");
  list.Add("files_overwritten_total", processes.files_overwritten,
           "files without a build id that were written to while they were mapped");
  list.Add("frames_overwritten_total", processes.frames_overwritten,
           "frames in such files: nobody can tell which content they met");
  list.Add("samples_unwanted_total", processes.unwanted_samples,
           "exported ticks of processes that relabeling rules drop; filtered in their windows");
  list.Add("samples_of_unknown_processes_total", processes.unknown_process_samples,
           "window entries of an unknown process; their addresses stay as they are");
  list.Add("frames_resolved_total", processes.resolved_frames,
           "addresses that became frames of a file in user space");
  list.Add("stacks_cut_total", processes.cut_stacks, "stacks cut where an address lies in no file");
  list.Add("frames_outdated_total", processes.outdated_frames,
           "frames attributed to a mapping that had ended; corrected");
  list.Add("frames_doubtful_total", processes.doubtful_frames,
           "frames whose mapping changed meanwhile; left as addresses");
}

std::string_view HelpOf(Unresolved reason) {
  switch (reason) {
    case Unresolved::kUnmapped:
      return "locations without a name: in no known mapping, of a process without a perf map";
    case Unresolved::kNoSymbols:
      return "locations without a name: the file's symbols do not cover it";
    case Unresolved::kFileGone:
      return "locations without a name: the file was gone before its symbols were read";
    case Unresolved::kUnreadable:
      return "locations without a name: the file's symbols could not be read";
    case Unresolved::kJit:
      return "locations without a name: the process's perf map does not cover it";
    case Unresolved::kKernel:
      return "locations without a name: outside of all known functions of the kernel";
    case Unresolved::kNoRoom:
      return "locations without a name: no room for the file's symbols";
    case Unresolved::kNotReady:
      return "locations without a name: the file's symbols, or the perf map, were not read in time";
    case Unresolved::kOtherKind:
      break;
  }
  return "locations without a name: of a kind that is never named";
}

void AddNames(const SymbolizerCounts& names, StatList& list) {
  static_assert(kNumbers<SymbolizerCounts> == 13 + kUnresolvedReasons);
  list.Add("locations_total", names.locations, "distinct places in code that were named");
  for (size_t i = 0; i < names.unresolved.size(); ++i) {
    const auto reason = static_cast<Unresolved>(i);
    list.Add("locations_unnamed_total", "reason", Name(reason), names.unresolved[i],
             HelpOf(reason));
  }
  list.Add("symbol_tables_read_total", names.tables_read,
           "symbol tables asked for by naming, including repeats");
  list.Add("symbol_tables_dropped_in_use_total", names.tables_dropped_in_use,
           "symbol tables dropped for lack of room while in use");
  list.Add("symbol_table_bytes", names.symbol_table_bytes,
           "bytes of symbol tables in memory, as of the last window");
  list.Add("symbol_spilled_bytes", names.symbol_spilled_bytes,
           "bytes of symbol tables in the spill file, as of the last window");
  list.Add("kernel_symbols_read_total", names.kernel_symbols_read,
           "times the kernel's symbols were read again for new modules");
  list.Add("perf_map_bad_lines_total", names.bad_perf_map_lines,
           "lines of perf maps that could not be understood");
  list.Add("perf_map_functions_forgotten_total", names.perf_map_functions_forgotten,
           "the oldest functions of perf maps that had more than there is memory for");
  list.Add(
      "perf_map_left_out_bytes_total", names.perf_map_bytes_left_out,
      "bytes of perf maps that were not read, as the files have more behind them than is kept");
  list.Add("jit_dump_bad_records_total", names.bad_jit_dump_records,
           "records of jitdumps that could not be understood");
  list.Add("jit_dump_functions_forgotten_total", names.jit_dump_functions_forgotten,
           "the oldest functions of jitdumps that had more than there is memory for");
  list.Add("jit_dump_lines_lost_total", names.jit_dump_lines_lost,
           "functions and lines of jitdumps whose places in the source are not kept");
  list.Add("jit_dumps_unreadable_total", names.jit_dumps_unreadable,
           "times a file that is called like a jitdump could not be read as one");
}

void AddDebugInfo(const ProfilerStats& stats, StatList& list) {
  static_assert(kNumbers<ObjectSymbols::Counters> == 4);
  constexpr std::string_view kName = "debug_info_files_total";
  constexpr std::string_view kHelp = "files whose debug information was looked for";
  list.Add(kName, "result", "read", stats.debug_info.read, kHelp);
  list.Add(kName, "result", "absent", stats.debug_info.absent, kHelp);
  list.Add(kName, "result", "failed", stats.debug_info.failed, kHelp);
  list.Add("debug_info_files_late", stats.without_debug_info,
           "files in use whose debug information has not been read yet, as of the last window");
}

}  // namespace

std::vector<Stat> ListStats(const ProfilerStats& stats) {
  StatList list;
  AddTicks(stats.ticks, list);
  AddSampler(stats.sampler, list);
  AddKernelTables(stats.sampler, list);
  AddUnwinding(stats, list);
  AddStore(stats.store, list);
  list.Add(
      "symbols_read_ahead_total", stats.symbols_read_ahead,
      "files whose symbols were read soon after their first sample, before a window needed them");
  AddDebugInfo(stats, list);
  AddReaders(stats.readers, list);
  AddWindows(stats, list);
  AddProcessRecords(stats.processes, list);
  AddProcesses(stats.processes, list);
  AddNames(stats.names, list);
  AddSpill(stats.spill, list);
  return std::move(list).Take();
}

}  // namespace pyrometer
