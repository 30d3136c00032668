// SPDX-License-Identifier: Apache-2.0
#include "process/process_history.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"

namespace pyrometer {
namespace {

// Each holds a directory of its process's root open.
constexpr size_t kMaxPerfMaps = 256;
// Until somebody takes them.
constexpr size_t kMaxKernelSymbols = 65536;

}  // namespace

ProcessHistory::ProcessHistory(Options options, ObjectInspector& inspector, AddressSpaceSink& sink)
    : options_(std::move(options)),
      page_size_(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))),
      sink_(sink),
      objects_({.held_files = options_.held_files}, inspector) {}

Result<void> ProcessHistory::Scan(std::span<const TaskRecord> tasks) {
  const MonotonicTime begin = MonotonicNow();
  processes_.set_clock(BootClock::Now());
  absl::flat_hash_map<Pid, const TaskRecord*> task_of;  // threads of a process agree on the exec
  for (const TaskRecord& task : tasks) task_of[task.pid] = &task;
  absl::flat_hash_set<Pid> seen;
  RETURN_IF_ERROR(ScanProcesses(
      options_.procfs, [&](const ScannedProcess& scanned, const ProcessDirectory& directory) {
        const auto task = task_of.find(scanned.key.pid);
        AddScanned(scanned, directory, task == task_of.end() ? nullptr : task->second);
        seen.insert(scanned.key.pid);
      }));
  for (const Pid gone : processes_.EndMissing(begin, [&](Pid pid) { return seen.contains(pid); })) {
    Withdraw(gone);
  }
  ++counters_.scans;
  PublishChanged();
  return {};
}

void ProcessHistory::AddScanned(const ScannedProcess& scanned, const ProcessDirectory& directory,
                                const TaskRecord* task) {
  const RootIdentity root = directory.Root().value_or(RootIdentity{});
  witnesses_.try_emplace(root, scanned.key.pid);
  std::vector<ObjectMapping> mappings;
  for (const ProcMapping& mapping : scanned.mappings) {
    const std::vector<ObjectMapping> pieces =
        ToObjects(mapping.range, mapping.file, root, &directory);
    mappings.insert(mappings.end(), pieces.begin(), pieces.end());
  }
  Process& process = processes_.Add(scanned, mappings, task);
  process.program().root = root;
  process.program().root_is_own = true;
  const auto is_anonymous = [](const ObjectMapping& m) { return m.object == ObjectId(0); };
  if (std::ranges::any_of(mappings, is_anonymous)) NoteAnonymousCode(process, &directory);
  changed_.insert(scanned.key.pid);
}

Process* ProcessHistory::Adopt(Pid pid) {
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(options_.procfs, pid);
  if (!directory) return nullptr;
  const Result<ScannedProcess> scanned = ScanProcess(*directory, pid);
  if (!scanned) return nullptr;
  AddScanned(*scanned, *directory, nullptr);
  return processes_.Living(pid);
}

void ProcessHistory::Apply(std::span<const ProcessEvent> events) {
  if (events.empty()) return;
  processes_.set_clock(BootClock::Now());
  for (const ProcessEvent& event : events) {
    std::visit([this](const auto& e) { On(e); }, event);
  }
  PublishChanged();
}

void ProcessHistory::On(const MappingEvent& event) {
  ++counters_.mmap_records;
  Process* process = processes_.Living(event.pid);
  if (process == nullptr) process = Adopt(event.pid);
  if (process == nullptr || event.when <= process->scanned_at) return;
  Program& program = process->program();
  bool changed = false;
  for (const ObjectMapping& piece : ToObjects(*process, event)) {
    changed |= program.space.Map(piece, event.when);
    if (piece.object == ObjectId(0)) NoteAnonymousCode(*process, nullptr);
  }
  // The kernel maps the executable before its interpreter and anything else.
  if (program.executable.empty() && !IsAnonymous(event.file.path) && event.file.path != kVdsoPath) {
    program.executable = event.file.path;
  }
  if (changed) changed_.insert(event.pid);
}

void ProcessHistory::On(const ForkEvent& event) {
  ++counters_.fork_records;
  const Process* const child = processes_.Apply(event);
  if (child == nullptr) return;
  if (!child->program().complete && !child->kernel_thread) Adopt(event.pid);
  changed_.insert(event.pid);
}

void ProcessHistory::On(const ExitEvent& event) {
  ++counters_.exit_records;
  if (processes_.Apply(event)) Withdraw(event.pid);
}

void ProcessHistory::On(const CommEvent& event) {
  ++counters_.comm_records;
  if (event.exec) ++counters_.exec_records;
  if (processes_.Apply(event) != nullptr) changed_.insert(event.pid);
}

void ProcessHistory::On(const SymbolEvent& event) {
  ++counters_.ksymbol_records;
  if (symbols_.size() >= kMaxKernelSymbols) {
    ++counters_.kernel_symbols_dropped;
  } else {
    symbols_.push_back(event.symbol);
  }
}

void ProcessHistory::On(const LostEvent& event) {
  counters_.lost_records += event.count;
  lost_ = true;
}

const ProcessDirectory* ProcessHistory::DirectoryOf(Process& process) {
  if (!open_ || open_->pid != process.key.pid || open_->born != process.born) {
    open_ = {process.key.pid, process.born, std::nullopt};
    Result<ProcessDirectory> directory = ProcessDirectory::Open(options_.procfs, process.key.pid);
    const Result<ProcStat> stat =
        directory ? directory->Stat() : Result<ProcStat>(directory.error());
    // The pid may be another process's by now.
    if (stat && process.StartedAt(stat->start)) {
      process.key.start_time = stat->start;
      process.start_is_exact = true;
      open_->directory = *std::move(directory);
    }
  }
  return open_->directory ? &*open_->directory : nullptr;
}

void ProcessHistory::LearnRoot(Process& process) {
  Program& program = process.program();
  if (program.root_is_own) return;
  const ProcessDirectory* const directory = DirectoryOf(process);
  if (directory == nullptr) return;
  const Result<RootIdentity> root = directory->Root();
  if (!root) return;
  program.root = *root;
  program.root_is_own = true;
  witnesses_.try_emplace(*root, process.key.pid);
}

void ProcessHistory::NoteAnonymousCode(Process& process, const ProcessDirectory* directory) {
  if (process.perf_map != nullptr || perf_maps_.size() >= kMaxPerfMaps) return;
  if (directory == nullptr) directory = DirectoryOf(process);
  if (directory == nullptr) return;
  Result<PerfMapDirectory> perf_map = PerfMapDirectory::Of(*directory);
  if (!perf_map) return;
  process.perf_map = std::make_shared<PerfMapDirectory>(*std::move(perf_map));
  perf_maps_.push_back(process.perf_map);
}

// What cannot become another file's unnoticed. The kernel tells of mmap but not of munmap, and of
// mmap some milliseconds late: with everything published, two plugins that a program loaded in turn
// at one address took each other's names (11 of 1,500 samples, 2026-11). So libraries, which may be
// unloaded, come as addresses, and the history says what was there at that moment.
std::vector<ObjectMapping> ProcessHistory::LastingMappings(const Program& program) const {
  std::vector<ObjectMapping> lasting = program.space.Current();
  std::erase_if(lasting, [&](const ObjectMapping& mapping) {
    const ObjectInfo* const object = objects_.Find(mapping.object);
    return object == nullptr || (!object->is_vdso && object->path != program.executable);
  });
  return lasting;
}

void ProcessHistory::Publish(Pid pid) {
  Process* const process = processes_.Living(pid);
  if (process == nullptr || process->kernel_thread) return;
  const Program& program = process->program();
  if (!program.exec || program.space.empty()) return;
  // The kernel compares start times exactly.
  const bool sure = process->start_is_exact || process->start_is_sure;
  if (!sure && DirectoryOf(*process) == nullptr) return;
  sink_.Publish(process->key, *program.exec, LastingMappings(program));
  published_.insert(pid);
  ++counters_.publishes;
}

void ProcessHistory::PublishChanged() {
  for (const Pid pid : changed_) Publish(pid);
  changed_.clear();
  open_.reset();
}

void ProcessHistory::Withdraw(Pid pid) {
  changed_.erase(pid);
  if (published_.erase(pid) > 0) sink_.Withdraw(pid);
}

Window ProcessHistory::Resolve(Window window) {
  Window resolved = ResolveWindow(std::move(window), processes_, resolved_);
  const uint64_t keep = static_cast<uint64_t>(options_.keep.count());
  const uint64_t end = resolved.end.value();
  Forget(MonotonicTime(end > keep ? end - keep : 0));
  return resolved;
}

void ProcessHistory::Forget(MonotonicTime horizon) {
  processes_.Forget(horizon);
  absl::erase_if(witnesses_, [this](const auto& w) { return !processes_.Living(w.second); });
  std::erase_if(perf_maps_, [](const auto& p) { return p.expired(); });
}

std::vector<KernelSymbolEvent> ProcessHistory::TakeKernelSymbolEvents() {
  return std::exchange(symbols_, {});
}

ProcessCounters ProcessHistory::counters() const {
  ProcessCounters all = counters_;
  all.objects = objects_.size();
  all.objects_unopened = objects_.unopened();
  all.objects_refused = objects_.refused();
  all.unknown_process_samples = resolved_.unknown_process_samples;
  all.resolved_frames = resolved_.resolved_frames;
  all.cut_stacks = resolved_.cut_stacks;
  return all;
}

}  // namespace pyrometer
