// SPDX-License-Identifier: Apache-2.0
#include "process/process_history.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "base/text.h"
#include "foreign/direct_foreign_files.h"

namespace pyrometer {
namespace {

// Until somebody takes them.
constexpr size_t kMaxKernelSymbols = 65536;

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

uint64_t MicrosecondsOf(std::chrono::microseconds time) {
  return static_cast<uint64_t>(time.count());
}

}  // namespace

ProcessHistory::ProcessHistory(Options options, std::shared_ptr<ObjectInspector> inspector,
                               AddressSpaceSink& sink)
    : options_(std::move(options)),
      page_size_(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))),
      sink_(sink),
      inspections_(
          options_.inspections, options_.clock,
          options_.files == nullptr ? std::make_shared<DirectForeignFiles>() : options_.files,
          std::move(inspector)),
      reader_(options_.reader, options_.clock, inspections_),
      objects_({.clock = options_.clock, .held_files = options_.held_files}, inspections_),
      processes_(options_.remembered) {}

std::vector<CodeMapping> ProcessHistory::ToCode(const ProcMaps& maps, const RootIdentity& root,
                                                const ProcReader::Subject& subject,
                                                const Process* known) {
  std::vector<CodeMapping> code;
  for (const ProcMapping& mapping : maps.mappings) {
    if (code.size() >= kMaxProgramMappings) break;
    const std::optional<ObjectId> still = StillKnown(mapping, known);
    const ObjectId object =
        still ? *still : Identify(mapping.first_line(), mapping.file, root, &subject);
    FileMapping range = mapping.range;
    if (mapping.is_reported) range = WithoutReservation(range, SegmentsOf(object), page_size_);
    const bool counted = IsCounted(range, mapping.file);
    for (const ObjectMapping& piece : ToObjects(range, AsKnown(object, range.start, known))) {
      code.push_back({piece, counted});
    }
  }
  return code;
}

// A path that does not lead to the file any more would have to be asked for each time.
std::optional<ObjectId> ProcessHistory::StillKnown(const ProcMapping& mapping,
                                                   const Process* known) const {
  if (known == nullptr || mapping.file.inode == 0) return std::nullopt;
  const auto before = known->program().space.At(mapping.range.start, kForever);
  if (!before || !objects_.IsHeldAndUnchanged(before->object)) return std::nullopt;
  const ObjectInfo& info = *objects_.Find(before->object);
  const MappedFile& file = mapping.file;
  const bool is_same = info.identity.inode == file.inode &&
                       gnu_dev_major(info.identity.device) == file.major &&
                       gnu_dev_minor(info.identity.device) == file.minor &&
                       WithoutDeleted(info.path) == WithoutDeleted(file.path);
  return is_same ? std::optional(before->object) : std::nullopt;
}

ObjectId ProcessHistory::AsKnown(ObjectId object, Address address, const Process* known) const {
  if (known == nullptr) return object;
  const std::optional<ObjectMapping> before = known->program().space.At(address, kForever);
  if (!before || before->object == object) return object;
  const ObjectInfo* const then = objects_.Find(before->object);
  const ObjectInfo* const now = objects_.Find(object);
  if (then == nullptr || now == nullptr) return object;
  // Nobody could ask which file that is. (On some file systems its inode does not tell it.)
  const bool keeps = !now->was_opened && !reader_.has_answered(known->key.pid) &&
                     WithoutDeleted(then->path) == WithoutDeleted(now->path) &&
                     objects_.IsHeldAndUnchanged(before->object);
  return keeps || IsSameFile(*then, *now) ? before->object : object;
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

void ProcessHistory::Apply(std::span<const ProcessEvent> events) {
  BeginBurst();
  TakeIdentified();
  if (!events.empty()) processes_.set_clock(BootClock::Now());
  for (const ProcessEvent& event : events) {
    std::visit([this](const auto& e) { On(e); }, event);
  }
  TakeProcessAnswers();
  ReadUnanswered();
  PutOff();
  EndBurst();
  PublishChanged();
}

void ProcessHistory::On(const MappingEvent& event) {
  ++counters_.mmap_records;
  reader_.Note(event);
  Process* process = processes_.Living(event.pid);
  if (process == nullptr && processes_.FindPassedOver(event.pid) != nullptr) {
    ++counters_.mappings_passed_over;
    return;
  }
  if (process == nullptr) process = Adopt(event.pid);
  if (process == nullptr || event.when <= process->scanned_at) return;
  const bool has_room = NoteRecord(*process);
  const Program& program = process->program();
  if (!has_room || program.over_budget || program.space.size() >= kMaxProgramMappings) {
    PassOver(*process, event, has_room);
    return;
  }
  const ObjectId object = AsKnown(Identify(*process, event), event.range.start, process);
  if (JitDumpFile::IsCalledLikeOne(event.file.path)) {
    const std::optional<ProcReader::Subject> subject = SubjectOf(*process);
    NoteJitDump(*process, event.range, event.file, subject ? &*subject : nullptr);
  }
  const FileMapping range = WithoutReservation(event.range, SegmentsOf(object), page_size_);
  const bool counted = IsCounted(range, event.file);
  bool changed = false;
  for (const ObjectMapping& piece : ToObjects(range, object)) {
    changed |= process->program().space.Map({piece, counted}, event.when);
    if (piece.object == ObjectId(0)) NoteAnonymousCode(*process, nullptr);
  }
  if (changed) NoteChange(*process, event.when);
}

void ProcessHistory::On(const ForkEvent& event) {
  ++counters_.fork_records;
  const bool is_process = event.pid != event.parent;
  if (is_process && scan_) AdoptParent(event);
  Process* const parent = is_process ? processes_.Living(event.parent) : nullptr;
  if (parent != nullptr) NoteRecord(*parent);
  Process* const child = processes_.Apply(event);
  if (const auto* const passed_over = processes_.FindPassedOver(event.pid);
      is_process && passed_over != nullptr) {
    NoteOverShare(*passed_over->share);
    Withdraw(event.pid);
  }
  if (child == nullptr) return;
  NoteChange(*child, event.when);
  const Program& program = child->program();
  if (!program.complete && !program.over_budget && !child->kernel_thread) Adopt(event.pid);
}

void ProcessHistory::On(const ExitEvent& event) {
  ++counters_.exit_records;
  if (!processes_.Apply(event)) return;
  Withdraw(event.pid);
  reader_.Forget(event.pid);
}

void ProcessHistory::On(const CommEvent& event) {
  ++counters_.comm_records;
  if (event.exec) ++counters_.exec_records;
  if (event.exec) reader_.ForgetBefore(event.pid, event.when);
  if (event.exec && execs_) execs_->push_back(event);
  if (event.exec && scan_) scan_->NoteExec(event);
  Process* const process = processes_.Apply(event);
  if (process != nullptr) {
    NoteRecord(*process);
    NoteChange(*process, event.when);
  } else if (event.exec && processes_.FindPassedOver(event.pid) != nullptr) {
    Adopt(event.pid);
  } else if (const Process* const known = processes_.Living(event.pid); event.exec && known) {
    // A scan had found that program; the question what it has mapped may just have been forgotten.
    const Program& program = known->program();
    if (!program.complete && !program.over_budget) reader_.AskLater(known->key);
  }
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
  reader_.NoteLost();
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

std::optional<ProcReader::Subject> ProcessHistory::SubjectOf(Process& process) {
  const ProcessDirectory* const directory = DirectoryOf(process);
  if (directory == nullptr) return std::nullopt;
  return ProcReader::Subject{*directory, process.key, process.share->user()};
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

bool ProcessHistory::Knows(const ProcessKey& key) {
  const Process* const living = processes_.Living(key.pid);
  return living == nullptr ? processes_.Find(key) != nullptr : living->start_is_exact;
}

ProcessCounters ProcessHistory::counters() const {
  ProcessCounters all = counters_;
  all.processes_unreadable += reader_.late();
  all.remembered_bytes = processes_.shares().all().bytes;
  all.remembered_ended = processes_.shares().all().ended;
  all.processes_forgotten_early = processes_.forgotten_early();
  all.processes_passed_over = processes_.passed_over();
  all.publish_us_median = MicrosecondsOf(publish_latency_.Quantile(0.5));
  all.publish_us_99_percent = MicrosecondsOf(publish_latency_.Quantile(0.99));
  all.publish_us_longest = MicrosecondsOf(publish_latency_.longest());
  all.objects = objects_.size();
  all.objects_unopened = objects_.unopened();
  all.objects_refused = objects_.refused();
  all.objects_waiting = objects_.waiting();
  const QuestionCounters files = inspections_.counters();
  all.file_questions = files.posted;
  all.file_questions_late = files.late;
  all.file_questions_refused = files.refused;
  all.openers_stuck = inspections_.files()->stuck();
  all.process_answers_late = reader_.late();
  all.processes_unanswered = reader_.unanswered();
  all.unknown_process_samples = resolved_.unknown_process_samples;
  all.resolved_frames = resolved_.resolved_frames;
  all.cut_stacks = resolved_.cut_stacks;
  all.outdated_frames = resolved_.outdated_frames;
  all.doubtful_frames = resolved_.doubtful_frames;
  return all;
}

}  // namespace pyrometer
