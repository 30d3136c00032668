// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that resolves windows and forgets what they can no longer ask for.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_identity.h"
#include "process/process_history.h"
#include "process/process_showing.h"
#include "process/used_stacks.h"

namespace pyrometer {
namespace {

// Beyond so many that wait to be seen, a process's directory is opened when its turn comes.
constexpr size_t kMostOpenUnseen = 64;
// Beyond so many a process is seen when it has a sample.
constexpr size_t kMostUnseen = 4096;
// Each holds a directory of its process's root open.
constexpr size_t kMaxPerfMaps = 256;

// Where the file has what belongs at `address`; the number itself if that is nowhere.
FileOffset ToFileOffset(std::span<const Segment> segments, ElfAddress address) {
  for (const Segment& segment : segments) {
    const uint64_t within = address.value() - segment.address.value();
    if (address >= segment.address && within < segment.file_size) {
      return FileOffset(segment.offset.value() + within);
    }
  }
  return FileOffset(address.value());
}

// When each stack was met the last time.
std::vector<MonotonicTime> LastSeen(const Window& window) {
  std::vector<MonotonicTime> last_seen(window.stacks.size());
  for (const Sample& sample : window.samples) {
    last_seen[sample.stack] = std::max(last_seen[sample.stack], sample.last_seen);
  }
  return last_seen;
}

}  // namespace

ResolvedWindow ProcessHistory::Resolve(Window window) {
  return ResolveShowing(options_.observer, std::move(window),
                        [this](const auto& action) { return action(*this); });
}

uint64_t ProcessHistory::BeginResolving(const Window& window) {
  inspections_.BeginBurst();
  TakeIdentified();
  PublishChanged();  // which has parents seen before their children
  if (options_.observer == nullptr) return 0;
  for (const Sample& sample : window.samples) {
    Process* const process = processes_.Find(sample.process, sample.first_seen);
    if (process == nullptr || process->seen != Seen::kNo) continue;
    const bool is_opened = process->alive() && unseen_.size() < kMostOpenUnseen;
    Show(*process, is_opened ? DirectoryOf(*process) : nullptr);
  }
  open_.reset();
  return last_unseen_;
}

std::vector<size_t> ProcessHistory::AttachLabels(Window& window) const {
  std::vector<size_t> unknown;
  for (size_t i = 0; i < window.samples.size(); ++i) {
    Sample& sample = window.samples[i];
    const Process* const process = processes_.Find(sample.process, sample.first_seen);
    if (process != nullptr) sample.labels = process->labels;
    // One that has become known since then has not been seen yet.
    const bool is_known =
        process != nullptr && (process->labels != nullptr || process->seen == Seen::kYes);
    if (!is_known) unknown.push_back(i);
  }
  return unknown;
}

ResolvedWindow ProcessHistory::FinishResolving(Window window, uint64_t unwanted) {
  inspections_.BeginBurst();
  TakeIdentified();
  PublishChanged();
  if (!identified_.empty()) {
    for (Frame& frame : window.frames) frame = AsIdentified(frame);
  }
  TakeOut(window, unwanted);
  ResolvedWindow resolved;
  resolved.window = ResolveWindow(std::move(window), processes_, resolved_);
  NoteOverwritten(resolved.window);
  ShareObjects(resolved);
  SharePerfMaps(resolved);
  TakeKernelSymbols(resolved);
  Forget(Before(resolved.window.end, options_.keep));
  resolved.unused = CloseUnusedFiles(resolved.window.end);
  open_.reset();
  return resolved;
}

void ProcessHistory::NoteOverwritten(Window& window) {
  const std::vector<MonotonicTime> last_seen = LastSeen(window);
  absl::flat_hash_map<ObjectId, std::optional<ObjectTable::Substitute>> known;
  absl::flat_hash_set<ObjectId> overwritten;
  for (size_t i = 0; i < window.stacks.size(); ++i) {
    const Stack& stack = window.stacks[i];
    const size_t first = stack.first_frame + stack.kernel_frames;
    for (Frame& frame : std::span(window.frames).subspan(first, stack.user_frames)) {
      if (frame.kind() != Frame::Kind::kObject) continue;
      const ObjectId object = frame.object();
      const auto [entry, is_new] = known.try_emplace(object);
      if (is_new && objects_.IsOverwritten(object)) {
        entry->second = objects_.Overwritten(object, WrittenAt(object));
        overwritten.insert(object);
      }
      if (!entry->second || last_seen[i] < entry->second->since) continue;
      ++counters_.frames_overwritten;
      const FileOffset offset = ToFileOffset(SegmentsOf(object), frame.offset());
      frame = Frame::Object(entry->second->by, ElfAddress(offset.value()));
    }
  }
  if (!overwritten.empty()) ReadAgainWhoMaps(overwritten);
}

// When the object's file was written to, or up to a tick later: the times of files are those of the
// tick before. What was last seen within that one was there before, too, as a process that is about
// to overwrite a file works in it until then. 0: at any time. The earlier of the two times counts,
// so that setting one hides nothing.
MonotonicTime ProcessHistory::WrittenAt(ObjectId object) {
  constexpr std::chrono::milliseconds kTick(10);
  const ObjectFile file = objects_.Held(object);
  const Result<FileIdentity> now =
      file == nullptr ? Fail(ErrorCode::kNotFound, "it is not held") : IdentityOf(file->get());
  if (!now) return MonotonicTime(0);
  const std::chrono::nanoseconds written(std::min(now->changed_ns, now->modified_ns));
  // If anything, later than it was, which makes what follows earlier.
  const auto origin = WallTimeOf(MonotonicTime(0), options_.clock).time_since_epoch();
  const std::chrono::nanoseconds since = written - origin + kTick;
  const MonotonicTime when(static_cast<uint64_t>(std::max(since.count(), int64_t{0})));
  return when <= After(options_.clock.Now(), kTick) ? when : MonotonicTime(0);  // it was set back
}

void ProcessHistory::ReadAgainWhoMaps(const absl::flat_hash_set<ObjectId>& overwritten) {
  counters_.files_overwritten += overwritten.size();
  const MonotonicTime now = options_.clock.Now();
  processes_.ForEachLiving([&](Process& process) {
    const std::vector<ObjectMapping> mappings = process.program().space.Current().mappings;
    const bool maps_one = std::ranges::any_of(
        mappings, [&](const ObjectMapping& m) { return overwritten.contains(m.object); });
    if (maps_one && MayRecheck(process, now)) ReadAgain(process, now);
  });
  PublishChanged();
}

// Before anything is looked up for the stacks: what nobody wants costs no names and no open files.
void ProcessHistory::TakeOut(Window& window, uint64_t unwanted) {
  if (unwanted == 0) return;
  window.accounting.exported -= unwanted;
  window.accounting.filtered += unwanted;
  counters_.unwanted_samples += unwanted;
  KeepUsedStacks(window);
}

void ProcessHistory::ShowAgain() {
  processes_.ForEachLiving([](Process& process) { process.seen = Seen::kNo; });
}

void ProcessHistory::ReplaceLabels(const ProcessKey& key, const LabelSet& of, LabelSet by) {
  Process* const process = processes_.Find(key);
  if (process != nullptr && process->labels == of) process->labels = std::move(by);
}

bool ProcessHistory::IsToBeShown(const Process& process) const {
  return options_.observer != nullptr && process.seen == Seen::kNo && unseen_.size() < kMostUnseen;
}

void ProcessHistory::Show(Process& process, const ProcessDirectory* directory) {
  process.seen = Seen::kIsToBe;
  Unseen unseen{.order = ++last_unseen_, .pid = process.key.pid, .number = process.number};
  if (directory != nullptr && unseen_.size() < kMostOpenUnseen) {
    if (auto own = directory->Duplicate()) unseen.directory = *std::move(own);
  }
  unseen_.push_back(std::move(unseen));
}

std::optional<ProcessHistory::Unseen> ProcessHistory::TakeUnseen(uint64_t last) {
  while (!unseen_.empty() && unseen_.front().order <= last) {
    Unseen next = std::move(unseen_.front());
    unseen_.pop_front();
    Process* const process = processes_.Life(next.pid, next.number);
    if (process == nullptr || process->seen == Seen::kYes) continue;
    process->seen = Seen::kIsToBe;  // also if it has called exec since: then as what it runs now
    if (const auto parent_pid = std::exchange(process->unseen_parent, std::nullopt)) {
      const Process* const parent = processes_.At(*parent_pid, process->born);
      if (parent != nullptr) process->labels = parent->labels;
    }
    if (!process->alive()) next.directory.reset();  // of a zombie some of it would be wrong
    if (!next.directory && process->alive()) {
      if (const ProcessDirectory* const directory = DirectoryOf(*process)) {
        if (auto own = directory->Duplicate()) next.directory = *std::move(own);
      }
      open_.reset();
    }
    next.key = process->key;
    next.since = process->program().since;
    next.comm = process->program().comm;
    next.inherited = process->labels;
    return next;
  }
  return std::nullopt;
}

void ProcessHistory::Label(const Unseen& seen, LabelSet labels) {
  Process* const process = processes_.Life(seen.pid, seen.number);
  if (process == nullptr) return;
  process->labels = std::move(labels);
  // Else it runs something else by now, as which it is to be seen, too.
  if (process->program().since == seen.since) process->seen = Seen::kYes;
}

void ProcessHistory::ShareObjects(ResolvedWindow& resolved) {
  absl::flat_hash_set<ObjectId> missing;
  for (const Frame frame : resolved.window.frames) {
    if (frame.kind() != Frame::Kind::kObject) continue;
    const auto [entry, added] = resolved.objects.try_emplace(frame.object());
    if (!added) continue;
    ObjectRef& object = entry->second;
    object.info = objects_.Share(frame.object());
    if (object.info == nullptr) {
      resolved.objects.erase(entry);
    } else if (object.info->was_opened) {
      object.file = objects_.Held(frame.object());
      if (object.file == nullptr) missing.insert(frame.object());
    }
  }
  const MonotonicTime now = options_.clock.Now();
  absl::erase_if(unreachable_, [&](const auto& u) { return u.second <= now; });
  absl::erase_if(missing, [this](ObjectId object) { return unreachable_.contains(object); });
  // Each is shared as soon as it is open again, before the next one takes its place.
  Reopen(missing, [&](ObjectId object) { resolved.objects[object].file = objects_.Held(object); });
}

void ProcessHistory::SharePerfMaps(ResolvedWindow& resolved) {
  absl::flat_hash_set<ProcessKey> looked_at;
  for (const Stack& stack : resolved.window.stacks) {
    if (!stack.process || !looked_at.insert(*stack.process).second) continue;
    Process* const process = processes_.Find(*stack.process);
    if (process == nullptr) continue;
    if (!process->alive()) resolved.ended.insert(*stack.process);
    // The user or root of one that lives may have changed since.
    auto perf_map = process->alive() ? LearnPerfMap(*process, nullptr) : process->perf_map;
    if (perf_map != nullptr) resolved.perf_maps.emplace(*stack.process, std::move(perf_map));
    ShareInherited(*process, *stack.process, resolved);
    if (!process->jit_dumps.empty()) resolved.jit_dumps[*stack.process] = process->jit_dumps;
  }
}

void ProcessHistory::ShareInherited(const Process& process, const ProcessKey& key,
                                    ResolvedWindow& resolved) {
  for (const std::shared_ptr<const InheritableCode>& code : process.inherited_code) {
    if (code->perf_map == nullptr || code->is_over) continue;
    resolved.inherited[key].push_back(code->of);
    resolved.perf_maps.emplace(code->of, code->perf_map);
    const Process* const of = processes_.Find(code->of);
    if (of == nullptr || !of->alive()) resolved.ended.insert(code->of);
  }
}

void ProcessHistory::NoteAnonymousCode(Process& process, const ProcessDirectory* directory) {
  process.has_anonymous_code = true;
  if (process.perf_map == nullptr && MayHoldPerfMap()) LearnPerfMap(process, directory);
}

bool ProcessHistory::MayHoldPerfMap() {
  std::erase_if(perf_maps_, [](const auto& p) { return p.expired(); });
  return perf_maps_.size() < kMaxPerfMaps;
}

std::shared_ptr<const PerfMapDirectory> ProcessHistory::LearnPerfMap(
    Process& process, const ProcessDirectory* directory) {
  if (directory == nullptr) directory = DirectoryOf(process);
  if (directory == nullptr) return process.perf_map;
  Result<PerfMapDirectory> perf_map =
      PerfMapDirectory::Of(*directory, process.key.start_time, inspections_);
  if (!perf_map || (process.perf_map != nullptr && perf_map->IsSame(*process.perf_map))) {
    return process.perf_map;
  }
  auto learnt = std::make_shared<const PerfMapDirectory>(*std::move(perf_map));
  // A single stray address is no reason to hold one until the process is forgotten.
  if (process.has_anonymous_code && (process.perf_map != nullptr || MayHoldPerfMap())) {
    process.perf_map = learnt;
    if (process.own_code != nullptr) process.own_code->perf_map = learnt;
    perf_maps_.push_back(learnt);
  }
  return learnt;
}

void ProcessHistory::TakeKernelSymbols(ResolvedWindow& resolved) {
  const auto later = std::stable_partition(
      symbols_.begin(), symbols_.end(),
      [&](const SymbolEvent& event) { return event.when <= resolved.window.end; });
  std::transform(std::make_move_iterator(symbols_.begin()), std::make_move_iterator(later),
                 std::back_inserter(resolved.kernel_events),
                 [](SymbolEvent&& event) { return std::move(event.symbol); });
  symbols_.erase(symbols_.begin(), later);
}

void ProcessHistory::Forget(MonotonicTime horizon) {
  processes_.Forget(horizon);
  absl::erase_if(witnesses_, [this](const auto& w) { return !processes_.Living(w.second); });
  UseNewRoom();
  sink_.ReleaseWithdrawn();
}

std::vector<ObjectId> ProcessHistory::CloseUnusedFiles(MonotonicTime end) {
  if (Before(end, options_.keep) < files_looked_through_) return {};
  files_looked_through_ = end;
  const MonotonicTime horizon = Before(Before(end, options_.keep), options_.keep);
  absl::erase_if(identified_, [&](const auto& i) { return i.second.since < horizon; });
  return objects_.CloseUnused(processes_.Objects());
}

}  // namespace pyrometer
