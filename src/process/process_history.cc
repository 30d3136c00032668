// SPDX-License-Identifier: Apache-2.0
#include "process/process_history.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/text.h"

namespace pyrometer {
namespace {

// Until somebody takes them.
constexpr size_t kMaxKernelSymbols = 65536;
// Pages of anonymous code that may come and go without a report, once it did so several times: it
// has a price, as libraries with mappings of up to twice the drift are not unwound in the kernel
// then.
constexpr uint64_t kMostDrift = 16;
constexpr uint32_t kHabit = 4;

// As is_exec_mapping() in the kernel's mm/internal.h. That memory grows downwards is only to be
// seen of the stack of the first thread.
bool IsCounted(const FileMapping& range, const MappedFile& file) {
  return !range.writable && file.path != "[stack]";
}

// True for two objects that are one file before and after its inode changed, as it does when the
// file is unlinked or another is renamed over it.
bool IsSameFile(const ObjectInfo& before, const ObjectInfo& now) {
  return before.was_opened && !before.build_id.empty() && before.build_id == now.build_id &&
         WithoutDeleted(before.path) == WithoutDeleted(now.path);
}

// True if so small a file's mapping may be gone while the count of executable pages is within its
// slack. Nobody unmaps the executable or the vDSO.
bool MayHaveGone(const ObjectMapping& mapping, const Program& program, uint64_t page_size) {
  if (program.drifts < kHabit) return false;
  if (mapping.object == ObjectId(0) || mapping.object == ObjectTable::kVdso) return false;
  const uint64_t pages = (mapping.end.value() - mapping.start.value()) / page_size;
  return pages <= 2 * program.drift_pages && !mapping.Contains(program.code);
}

std::vector<PublishedMapping> ToPublish(const std::vector<ObjectMapping>& mappings,
                                        const Program& program, uint64_t page_size) {
  const AddressRanges& shifting = program.space.shifting();
  std::vector<PublishedMapping> published;
  published.reserve(mappings.size());
  for (const ObjectMapping& mapping : mappings) {
    const bool may_have_gone = MayHaveGone(mapping, program, page_size);
    for (Address start = mapping.start; start < mapping.end;) {
      const Address end = shifting.EndOfStretch(start, mapping.end);
      const bool is_shifting = may_have_gone || shifting.Contains(start);
      published.push_back({{start, end, mapping.object, mapping.bias}, is_shifting});
      start = end;
    }
  }
  return published;
}

std::vector<ObjectMapping> FilesIn(const AddressSpace::Picture& picture) {
  std::vector<ObjectMapping> files;
  std::ranges::copy_if(picture.mappings, std::back_inserter(files),
                       [](const ObjectMapping& m) { return m.object != ObjectId(0); });
  return files;
}

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
  const Result<std::vector<Pid>> unreadable = ScanProcesses(
      options_.procfs, [&](const ScannedProcess& scanned, const ProcessDirectory& directory) {
        const auto task = task_of.find(scanned.key.pid);
        AddScanned(scanned, directory, task == task_of.end() ? nullptr : task->second);
        seen.insert(scanned.key.pid);
      });
  if (!unreadable) {
    ++counters_.scans_failed;
    lost_ = true;
    return unreadable.error();
  }
  seen.insert(unreadable->begin(), unreadable->end());
  counters_.processes_unreadable += unreadable->size();
  for (const Pid gone : processes_.EndMissing(begin, [&](Pid pid) { return seen.contains(pid); })) {
    Withdraw(gone);
  }
  ++counters_.scans;
  PublishChanged();
  return {};
}

void ProcessHistory::AddScanned(const ScannedProcess& scanned, const ProcessDirectory& directory,
                                const TaskRecord* task) {
  const Process* const known = processes_.Living(scanned.key.pid);
  if (!scanned.mappings) {
    ++counters_.processes_unreadable;
    if (known != nullptr && known->StartedAt(scanned.key.start_time)) return;
  }
  const Result<RootIdentity> root = directory.Root();
  if (root) witnesses_.try_emplace(*root, scanned.key.pid);
  std::vector<CodeMapping> mappings;
  if (scanned.mappings) {
    mappings = ToCode(*scanned.mappings, root.value_or(RootIdentity{}), directory, known);
  }
  Process& process = processes_.Add(scanned, mappings, task);
  if (!scanned.mappings) process.program().complete = false;
  if (root) {
    process.program().root = *root;
    process.program().root_is_own = true;
  }
  const auto is_anonymous = [](const CodeMapping& m) { return m.mapping.object == ObjectId(0); };
  if (std::ranges::any_of(mappings, is_anonymous)) NoteAnonymousCode(process, &directory);
  ShowProcess(process, process.key, &directory);
  changed_.insert(scanned.key.pid);
}

std::vector<CodeMapping> ProcessHistory::ToCode(std::span<const ProcMapping> mappings,
                                                const RootIdentity& root,
                                                const ProcessDirectory& directory,
                                                const Process* known) {
  std::vector<CodeMapping> code;
  for (const auto& [range, file] : mappings) {
    const ObjectId object = Identify(range, file, root, &directory);
    const bool counted = IsCounted(range, file);
    for (const ObjectMapping& piece : ToObjects(range, AsKnown(object, range.start, known))) {
      code.push_back({piece, counted});
    }
  }
  return code;
}

ObjectId ProcessHistory::AsKnown(ObjectId object, Address address, const Process* known) const {
  if (known == nullptr) return object;
  const std::optional<ObjectMapping> before = known->program().space.At(address, kForever);
  if (!before || before->object == object) return object;
  const ObjectInfo* const then = objects_.Find(before->object);
  const ObjectInfo* const now = objects_.Find(object);
  const bool is_same = then != nullptr && now != nullptr && IsSameFile(*then, *now);
  return is_same ? before->object : object;
}

std::vector<ObjectMapping> ProcessHistory::ToObjects(const FileMapping& range,
                                                     ObjectId object) const {
  if (object == ObjectId(0)) return {{range.start, range.end, object, 0}};
  if (object == ObjectTable::kVdso || object == ObjectTable::kCompatVdso) {
    return {{range.start, range.end, object, range.start.value()}};
  }
  return ToObjectMappings(range, object, SegmentsOf(object), page_size_);
}

std::span<const Segment> ProcessHistory::SegmentsOf(ObjectId object) const {
  const ObjectInfo* const info = objects_.Find(object);
  return info == nullptr ? std::span<const Segment>() : info->segments;
}

Process* ProcessHistory::Adopt(Pid pid) {
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(options_.procfs, pid);
  const Result<ScannedProcess> scanned =
      directory ? ScanProcess(*directory, pid) : Result<ScannedProcess>(directory.error());
  if (!scanned) {
    NoteUnreadable(scanned.error());
    return nullptr;
  }
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
  const ObjectId object = AsKnown(Identify(*process, event), event.range.start, process);
  const FileMapping range = WithoutReservation(event.range, SegmentsOf(object), page_size_);
  const bool counted = IsCounted(range, event.file);
  bool changed = false;
  for (const ObjectMapping& piece : ToObjects(range, object)) {
    changed |= process->program().space.Map({piece, counted}, event.when);
    if (piece.object == ObjectId(0)) NoteAnonymousCode(*process, nullptr);
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
    symbols_.push_back(event);
  }
}

void ProcessHistory::On(const LostEvent& event) {
  counters_.lost_records += event.count;
  lost_ = true;
}

void ProcessHistory::NoteUnreadable(const Error& error) {
  if (!IsGone(error)) ++counters_.processes_unreadable;
}

const ProcessDirectory* ProcessHistory::DirectoryOf(Process& process) {
  if (!open_ || open_->pid != process.key.pid || open_->born != process.born) {
    open_ = {process.key.pid, process.born, std::nullopt};
    Result<ProcessDirectory> directory = ProcessDirectory::Open(options_.procfs, process.key.pid);
    const Result<ProcStat> stat =
        directory ? directory->Stat() : Result<ProcStat>(directory.error());
    if (!stat) NoteUnreadable(stat.error());
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

void ProcessHistory::Publish(Pid pid) {
  Process* const process = processes_.Living(pid);
  if (process == nullptr) {
    Withdraw(pid);
    return;
  }
  Show(*process);
  Program& program = process->program();
  if (process->kernel_thread || !program.exec || program.space.empty()) {
    Withdraw(pid);
    program.space.NoteTold(MonotonicNow());
    return;
  }
  const AddressSpace::Picture now = program.space.Current();
  const ExecPages exec_pages{.count = now.counted_bytes / page_size_,
                             .slack = program.drifts < kHabit ? 0 : program.drift_pages};
  sink_.Publish(process->key, *program.exec, exec_pages,
                ToPublish(now.mappings, program, page_size_));
  program.space.NoteTold(MonotonicNow());
  ++counters_.publishes;
}

void ProcessHistory::PublishChanged() {
  // Parents before their children, which inherit what the observer says of them.
  std::vector<std::pair<MonotonicTime, Pid>> by_birth;
  by_birth.reserve(changed_.size());
  for (const Pid pid : std::exchange(changed_, {})) {
    const Process* const process = processes_.Living(pid);
    by_birth.emplace_back(process == nullptr ? MonotonicTime(0) : process->born, pid);
  }
  std::ranges::sort(by_birth);
  for (const auto& [born, pid] : by_birth) Publish(pid);
  open_.reset();
}

void ProcessHistory::Withdraw(Pid pid) {
  changed_.erase(pid);
  // Also where nothing was published: the kernel side gives a child what it knows of the parent.
  sink_.Withdraw(pid);
}

void ProcessHistory::Recheck(const ProcessKey& key) {
  Process* const process = processes_.Living(key.pid);
  if (process == nullptr || !process->StartedAt(key.start_time)) return;
  const MonotonicTime begin = MonotonicNow();
  if (!process->rechecks.Take(begin)) {
    ++counters_.rechecks_refused;
    return;
  }
  ++counters_.rechecks;
  // Null if the pid is another process's by now, or cannot be read.
  if (const ProcessDirectory* const directory = DirectoryOf(*process)) {
    LearnRoot(*process);
    const Result<std::vector<ProcMapping>> mappings = directory->Mappings();
    if (!mappings) NoteUnreadable(mappings.error());
    if (mappings && !mappings->empty()) {
      Program& program = process->program();
      const auto code = ToCode(*mappings, program.root, *directory, process);
      const AddressSpace::Picture before = program.space.Current();
      if (program.space.Replace(code, begin)) {
        ++counters_.rechecks_changed;
        if (program.complete) NoteDrift(before, *directory, program);
      }
      program.complete = true;
    }
  }
  changed_.insert(key.pid);
  PublishChanged();
}

// A program that makes code while it runs (ClickHouse's expressions, V8) changes its count of
// executable pages all the time, and would never be unwound in the kernel.
void ProcessHistory::NoteDrift(const AddressSpace::Picture& before,
                               const ProcessDirectory& directory, Program& program) const {
  const AddressSpace::Picture now = program.space.Current();
  if (FilesIn(before) != FilesIn(now)) return;
  const auto [less, more] = std::minmax(before.counted_bytes, now.counted_bytes);
  const uint64_t pages = (more - less) / page_size_;
  if (pages == 0 || pages > kMostDrift) return;
  ++program.drifts;
  if (pages <= program.drift_pages) return;
  program.drift_pages = pages;
  if (const Result<ProcStat> stat = directory.Stat()) program.code = stat->code;
}

std::optional<ProgramMappings> ProcessHistory::MappingsAt(const ProcessKey& key, ExecId exec,
                                                          MonotonicTime when) {
  if (processes_.Living(key.pid) == nullptr && processes_.Find(key) == nullptr) {
    Adopt(key.pid);
    PublishChanged();
  } else if (processes_.LearnStart(key, when)) {
    changed_.insert(key.pid);
    PublishChanged();
  }
  const Program* const program = processes_.Find(key, exec, when);
  if (program == nullptr) return std::nullopt;
  AddressSpace::Picture then = program->space.At(when);
  return ProgramMappings{std::move(then.mappings), then.counted_bytes / page_size_,
                         program->complete};
}

ProcessCounters ProcessHistory::counters() const {
  ProcessCounters all = counters_;
  all.objects = objects_.size();
  all.objects_unopened = objects_.unopened();
  all.objects_refused = objects_.refused();
  all.unknown_process_samples = resolved_.unknown_process_samples;
  all.resolved_frames = resolved_.resolved_frames;
  all.cut_stacks = resolved_.cut_stacks;
  all.outdated_frames = resolved_.outdated_frames;
  all.doubtful_frames = resolved_.doubtful_frames;
  return all;
}

}  // namespace pyrometer
