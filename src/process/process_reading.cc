// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that reads processes in /proc.
#include <algorithm>
#include <iterator>
#include <utility>

#include "process/process_history.h"

namespace pyrometer {
namespace {

// Pages of anonymous code that may come and go without a report, once it did so several times: it
// has a price, as libraries with mappings of up to twice the drift are not unwound in the kernel
// then.
constexpr uint64_t kMostDrift = 16;
// One that reads more of /proc/PID/maps, some 2,000 lines, counts as several.
constexpr uint64_t kBytesOfRecheck = uint64_t{256} << 10;

std::vector<ObjectMapping> FilesIn(const AddressSpace::Picture& picture) {
  std::vector<ObjectMapping> files;
  std::ranges::copy_if(picture.mappings, std::back_inserter(files),
                       [](const ObjectMapping& m) { return m.object != ObjectId(0); });
  return files;
}

bool HasAnonymousCode(const std::vector<CodeMapping>& code) {
  return std::ranges::any_of(code,
                             [](const CodeMapping& c) { return c.mapping.object == ObjectId(0); });
}

}  // namespace

void ProcessHistory::AddScanned(const ScannedProcess& scanned, const ProcessDirectory& directory) {
  if (scan_) scan_->seen.insert(scanned.key.pid);
  const std::optional<TaskRecord> known_task = TaskOf(scanned.key);
  const TaskRecord* const task = known_task ? &*known_task : nullptr;
  const Process* const known = processes_.Living(scanned.key.pid);
  const bool knows_better = scanned.user == kUnknownUser && known != nullptr;
  const auto share = knows_better ? known->share : processes_.ShareOf(scanned.user);
  if (known == nullptr && !processes_.MakeRoom(*share)) {
    PassOver(scanned, task);
    return;
  }
  if (!scanned.maps && !scanned.is_awaited) ++counters_.processes_unreadable;
  const bool missed_exec =
      known != nullptr && task != nullptr && known->program().exec != task->exec;
  if (missed_exec) reader_.NoteLost(scanned.key.pid);
  const std::optional<RootIdentity>& root = scanned.root;
  if (root) witnesses_.try_emplace(*root, scanned.key.pid);
  ReadCode read;
  if (scanned.maps) {
    const ProcReader::Subject subject{directory, scanned.key, share->user()};
    read = WithinShare(ToCode(*scanned.maps, root.value_or(RootIdentity{}), subject, known),
                       scanned.maps->complete, *share, known);
  }
  Process& process = processes_.Add(scanned, read.remembered, task);
  if (scanned.maps) NoteRead(process, read);
  if (root) {
    process.program().root = *root;
    process.program().root_is_own = true;
  }
  if (HasAnonymousCode(read.remembered)) NoteAnonymousCode(process, &directory);
  if (scanned.maps) NoteJitDumps(process, *scanned.maps, {directory, scanned.key, share->user()});
  if (IsToBeShown(process)) Show(process, &directory);
  changed_.insert(scanned.key.pid);
}

Process* ProcessHistory::Adopt(Pid pid) {
  if (!MayAdopt(pid)) return nullptr;
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(options_.procfs, pid);
  const Result<ScannedProcess> scanned = directory
                                             ? ScanProcess(*directory, pid, reader_, options_.clock)
                                             : Result<ScannedProcess>(directory.error());
  if (!scanned) {
    NoteUnreadable(scanned.error());
    return nullptr;
  }
  AddScanned(*scanned, *directory);
  return processes_.Living(pid);
}

std::optional<TaskRecord> ProcessHistory::TaskOf(const ProcessKey& key) const {
  const TaskRecord* const task = scan_ ? scan_->TaskOf(key.pid) : nullptr;
  if (task != nullptr && task->start == key.start_time) return *task;
  const ProcessTable::PassedOver* const passed_over = processes_.FindPassedOver(key.pid);
  if (passed_over == nullptr || !passed_over->exec) return std::nullopt;
  return TaskRecord{key.pid, Tid(key.pid.value()), key.start_time, *passed_over->exec,
                    passed_over->since};
}

void ProcessHistory::NoteUnreadable(const Error& error) {
  if (!IsGone(error)) ++counters_.processes_unreadable;
}

void ProcessHistory::Recheck(const ProcessKey& key) {
  Process* const process = processes_.Living(key.pid);
  if (process == nullptr || !process->StartedAt(key.start_time)) return;
  const MonotonicTime begin = options_.clock.Now();
  if (!MayRecheck(*process, begin)) return;
  inspections_.BeginBurst();
  TakeIdentified();
  ++counters_.rechecks;
  if (ReadAgain(*process, begin)) ++counters_.rechecks_changed;
  PublishChanged();
}

bool ProcessHistory::ReadAgain(Process& process, MonotonicTime now) {
  changed_.insert(process.key.pid);
  // Nothing if the pid is another process's by now, or cannot be read.
  const std::optional<ProcReader::Subject> subject = SubjectOf(process);
  if (!subject) return false;
  const Result<ProcMaps> maps = reader_.Mappings(*subject);
  if (maps) return TakeMaps(process, *maps, *subject, now);
  if (maps.error().code() != ErrorCode::kExhausted) NoteUnreadable(maps.error());
  return false;
}

bool ProcessHistory::TakeMaps(Process& process, const ProcMaps& maps,
                              const ProcReader::Subject& subject, MonotonicTime when) {
  const auto more = static_cast<uint32_t>(maps.bytes / kBytesOfRecheck);
  process.rechecks.Charge(more);
  process.share->rechecks.Charge(more);
  if (maps.mappings.empty()) return false;
  LearnRoot(process);
  Program& program = process.program();
  const ReadCode read = WithinShare(ToCode(maps, program.root, subject, &process), maps.complete,
                                    *process.share, &process);
  const AddressSpace::Picture before = program.space.Current();
  const bool changed = program.space.Replace(read.remembered, when);
  if (changed && program.complete) NoteDrift(before, subject.directory, program);
  NoteRead(process, read);
  if (HasAnonymousCode(read.remembered)) NoteAnonymousCode(process, &subject.directory);
  NoteJitDumps(process, maps, subject);
  return changed;
}

void ProcessHistory::NoteJitDumps(Process& process, const ProcMaps& maps,
                                  const ProcReader::Subject& subject) {
  size_t looked_at = 0;
  for (const ProcMapping& mapping : maps.mappings) {
    if (!JitDumpFile::IsCalledLikeOne(mapping.file.path)) continue;
    NoteJitDump(process, mapping.first_line(), mapping.file, &subject);
    if (++looked_at == kMostJitDumpsOfOne) break;
  }
}

void ProcessHistory::TakeProcessAnswers() {
  for (const ProcReader::Answer& answer : reader_.TakeAnswers()) {
    if (!answer.maps) NoteUnreadable(answer.maps.error());
    Process* const process = processes_.Living(answer.process.pid);
    if (!answer.maps || process == nullptr) continue;
    const std::optional<ProcReader::Subject> subject = SubjectOf(*process);
    if (!subject) {
      reader_.AskLater(answer.process);
    } else if (process->key == answer.process) {
      changed_.insert(process->key.pid);
      TakeMaps(*process, *answer.maps, *subject, answer.asked);
      reader_.AskAgainLater(answer);
    }
  }
}

void ProcessHistory::ReadUnanswered() {
  for (const Pid pid : reader_.Due()) {
    Process* const process = processes_.Living(pid);
    if (process == nullptr) {
      reader_.Forget(pid);
    } else if (const std::optional<ProcReader::Subject> subject = SubjectOf(*process)) {
      static_cast<void>(reader_.Mappings(*subject));  // the answer will come
    } else {
      reader_.AskLater(process->key);
    }
  }
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

}  // namespace pyrometer
