// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_sources.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "base/file_identity.h"

namespace pyrometer {
namespace {

// After so long it is looked again whether there is still time to wait.
constexpr std::chrono::nanoseconds kStep = std::chrono::milliseconds(50);

Unresolved ReasonOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo:
      return Unresolved::kNotReady;
    case ErrorCode::kExhausted:
      return Unresolved::kNoRoom;
    default:
      return Unresolved::kUnreadable;
  }
}

Error NoSources() {
  return Fail(ErrorCode::kNotFound, "the file has no debug information");
}

Error NoTime() {
  return Fail(ErrorCode::kExhausted, "the window has no time left for files of JIT compilers");
}

DebugFileCriteria CriteriaOf(const ObjectRef& object) {
  return {.build_id = object.info->build_id,
          .user = OwnerOf(object.file->get()).value_or(0),
          .path = object.info->path,
          .own = object.file};
}

}  // namespace

void WindowSources::Use(ResolvedWindow& resolved) {
  objects_ = std::move(resolved.objects);
  perf_maps_ = std::move(resolved.perf_maps);
  jit_dumps_ = std::move(resolved.jit_dumps);
  ended_ = std::move(resolved.ended);
  left_ = patience_;
  ahead_.clear();
  {
    const absl::MutexLock lock(&mutex_);
    for (const ObjectId object : resolved.unused) Forget(object);
    DropOutdated();
    for (const auto& [object, reference] : objects_) {
      if (reference.file == nullptr) continue;
      for (const What what : {What::kSymbols, What::kSources}) {
        if (TellsNames({object, what}) && !known_.contains({object, what})) {
          ahead_.push_back({object, what});
        }
      }
    }
  }
  AskServerAgain();
  AskAhead();
}

void WindowSources::Clear() {
  objects_.clear();
  perf_maps_.clear();
  jit_dumps_.clear();
  ended_.clear();
  ahead_.clear();
}

// What can be asked for again, because the window has the file.
void WindowSources::DropOutdated() {
  absl::erase_if(known_, [this](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto& [wanted, known] = entry;
    if (!known.is_outdated || !known.answer) return false;
    const auto reference = objects_.find(wanted.first);
    if (reference == objects_.end() || reference->second.file == nullptr) return false;
    improved_.insert(wanted.first);
    return true;
  });
}

std::vector<ObjectId> WindowSources::TakeImproved() {
  std::vector<ObjectId> improved(improved_.begin(), improved_.end());
  improved_.clear();
  return improved;
}

// Unless the window has it still, or its symbols are being read.
void WindowSources::Forget(ObjectId object) {
  for (const What what : {What::kSymbols, What::kSources}) {
    const auto known = known_.find({object, what});
    if (known == known_.end() || !known->second.answer || objects_.contains(object)) continue;
    known_.erase(known);
  }
  if (!objects_.contains(object)) served_.erase(object);
}

void WindowSources::GiveUpAt(Time when) {
  const absl::MutexLock lock(&mutex_);
  give_up_at_ = when;
}

bool WindowSources::IsTooLate() const {
  const absl::MutexLock lock(&mutex_);
  return std::chrono::steady_clock::now() >= give_up_at_;
}

std::optional<ObjectDescription> WindowSources::Describe(ObjectId object) {
  const auto known = objects_.find(object);
  if (known == objects_.end()) return std::nullopt;
  const ObjectInfo& info = *known->second.info;
  return ObjectDescription{.path = info.path,
                           .build_id = info.build_id,
                           .segments = info.segments,
                           .is_vdso = info.is_vdso,
                           .hash = info.hash,
                           .go_build_id = info.go_build_id};
}

SymbolAnswer WindowSources::Symbols(ObjectId object) {
  const auto reference = objects_.find(object);
  if (reference == objects_.end()) return {.table = nullptr, .reason = Unresolved::kFileGone};
  const ObjectRef& ref = reference->second;
  if (ref.file == nullptr) return WithoutFile(object, !ref.info->build_id.empty());
  AskAhead();
  // What was read before may have been dropped: then it is read again, once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::optional<Answer> answer = Await({object, What::kSymbols});
    if (!answer) break;
    std::shared_ptr<const SymbolTable> table = *answer ? parts_.store.SymbolsOf(**answer) : nullptr;
    if (table != nullptr) return {.table = std::move(table)};
    {
      const absl::MutexLock lock(&mutex_);
      known_.erase({object, What::kSymbols});  // to be asked for again
    }
    if (!*answer) return {.table = nullptr, .reason = ReasonOf((*answer).error().code())};
  }
  return {.table = nullptr, .reason = Unresolved::kNotReady};
}

SourceAnswer WindowSources::Sources(ObjectId object) {
  const auto reference = objects_.find(object);
  if (reference == objects_.end() || reference->second.file == nullptr) return {};
  const std::optional<Answer> answer = Await({object, What::kSources});
  const bool is_coming = !IsTooLate() && (!answer || IsBetterOneComing(object));
  if (!answer) return {.map = nullptr, .is_coming = is_coming};
  if (*answer) {
    std::shared_ptr<const SourceMap> map = parts_.store.SourcesOf(**answer);
    if (map != nullptr) return {.map = std::move(map), .is_coming = is_coming};
  } else if ((*answer).error().code() != ErrorCode::kIo) {
    return {.map = nullptr, .is_coming = is_coming};
  }
  // It was dropped, or its file system did not answer: to be asked for again.
  const absl::MutexLock lock(&mutex_);
  known_.erase({object, What::kSources});
  return {.map = nullptr, .is_coming = true};
}

bool WindowSources::IsBetterOneComing(ObjectId object) const {
  const absl::MutexLock lock(&mutex_);
  const auto served = served_.find(object);
  if (served != served_.end() && !served->second.has_value()) return true;
  const auto known = known_.find({object, What::kSources});
  return known != known_.end() && known->second.is_outdated;
}

// Its symbols may have been read for an earlier window, while its file was still held. Without a
// build id it may have been written to since, and only the held file would tell.
SymbolAnswer WindowSources::WithoutFile(ObjectId object, bool has_build_id) {
  std::optional<Answer> known;
  if (has_build_id) {
    const absl::MutexLock lock(&mutex_);
    known = Find({object, What::kSymbols});
  }
  auto table = known && *known ? parts_.store.SymbolsOf(**known) : nullptr;
  return {.table = std::move(table), .reason = Unresolved::kFileGone};
}

void WindowSources::Ask(Wanted wanted) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!known_.try_emplace(wanted).second) return;
    ++pending_;
  }
  const ObjectRef& reference = objects_.at(wanted.first);
  const Result<FileIdentity> identity = IdentityOf(reference.file->get());
  if (!identity) return Answered(wanted, identity.error());
  ArtifactStore::Source source{.own = reference.file,
                               .build_id = reference.info->build_id,
                               .file_system = identity->device,
                               .size = identity->size,
                               .is_named_by_sources = reference.info->named_by_sources};
  // Most files tell nothing of their source, and to read one takes a process of its own.
  const bool is_silent = wanted.second == What::kSources && !reference.info->may_tell_sources;
  const bool has_symbols = wanted.second == What::kSymbols && reference.info->tells_names;
  if (parts_.debug_files == nullptr || has_symbols) {
    if (is_silent) return Answered(wanted, NoSources());
    return AskStore(wanted, std::move(source), {});
  }
  if (DebugFile served = ServedFor(wanted.first)) {
    return AskStore(wanted, std::move(source), {.debug = std::move(served), .supplement = nullptr});
  }
  const DebugFileCriteria criteria = CriteriaOf(reference);
  // What the file tells itself is as much as a server's would.
  const bool may_need_server = !reference.info->may_tell_sources;
  parts_.debug_files->FindHere(wanted.first,
                               RootsOf(wanted.first, *parts_.processes, parts_.procfs), criteria,
                               lifeline_.To([wanted, source, criteria, is_silent, may_need_server](
                                                WindowSources& self, const FoundDebugFiles& found) {
                                 // First: who has the answer looks whether a better one comes.
                                 if (may_need_server && found.empty()) {
                                   self.AskServer(wanted.first, criteria);
                                 }
                                 if (is_silent && found.debug == nullptr) {
                                   self.Answered(wanted, NoSources());
                                 } else {
                                   self.AskStore(wanted, source, found);
                                 }
                               }));
}

DebugFile WindowSources::ServedFor(ObjectId object) const {
  const absl::MutexLock lock(&mutex_);
  const auto served = served_.find(object);
  return served == served_.end() ? nullptr : served->second.value_or(nullptr);
}

// Perhaps on another thread. Asks once for each object.
void WindowSources::AskServer(ObjectId object, const DebugFileCriteria& criteria) {
  if (!parts_.debug_files->has_server() || criteria.build_id.empty()) return;
  {
    const absl::MutexLock lock(&mutex_);
    if (!served_.try_emplace(object).second) return;
  }
  parts_.debug_files->FindThere(object, criteria,
                                lifeline_.To([object](WindowSources& self, FoundDebugFiles found) {
                                  self.Served(object, std::move(found.debug));
                                }));
}

// Where it had nothing for the window's objects, or failed, and DebugFiles knows that no more.
void WindowSources::AskServerAgain() {
  std::vector<ObjectId> again;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [object, served] : served_) {
      const bool was_missed = served.has_value() && *served == nullptr;
      const auto reference = objects_.find(object);
      if (!was_missed || reference == objects_.end() || reference->second.file == nullptr) continue;
      if (!parts_.debug_files->WasMissed(object)) again.push_back(object);
    }
    for (const ObjectId object : again) served_.erase(object);
  }
  for (const ObjectId object : again) AskServer(object, CriteriaOf(objects_.at(object)));
}

void WindowSources::Served(ObjectId object, DebugFile file) {
  const absl::MutexLock lock(&mutex_);
  const bool is_there = file != nullptr;
  const auto served = served_.find(object);
  if (served == served_.end()) return;  // nobody needs it any more
  served->second = std::move(file);
  for (const What what : {What::kSymbols, What::kSources}) {
    const auto known = known_.find({object, what});
    if (is_there && known != known_.end()) known->second.is_outdated = true;
  }
}

// Perhaps on another thread.
void WindowSources::AskStore(Wanted wanted, ArtifactStore::Source source,
                             const FoundDebugFiles& found) {
  std::vector<DebugFile> files = found.splits;
  files.insert(files.end(), {found.debug, found.supplement});
  for (const DebugFile& file : files) {
    if (file == nullptr) continue;
    const Result<FileIdentity> identity = IdentityOf(file->get());
    source.size += identity ? identity->size : 0;
  }
  source.debug = found.debug;
  source.supplement = found.supplement;
  source.splits = found.splits;
  auto on_answer = lifeline_.To(
      [wanted](WindowSources& self, Answer answer) { self.Answered(wanted, std::move(answer)); });
  if (wanted.second == What::kSymbols) {
    parts_.store.AskSymbols(std::move(source), std::move(on_answer));
  } else {
    parts_.store.AskSources(std::move(source), std::move(on_answer));
  }
}

void WindowSources::AskAhead() {
  while (!ahead_.empty() && !IsTooLate()) {
    {
      const absl::MutexLock lock(&mutex_);
      if (pending_ >= kMostAhead) return;
    }
    Ask(ahead_.front());
    ahead_.pop_front();
  }
}

void WindowSources::Answered(Wanted wanted, Answer answer) {
  const absl::MutexLock lock(&mutex_);
  --pending_;
  known_[wanted].answer = std::move(answer);
}

std::optional<WindowSources::Answer> WindowSources::Find(Wanted wanted) const {
  const auto known = known_.find(wanted);
  return known == known_.end() ? std::nullopt : known->second.answer;
}

// Nothing, if there is no answer in the time that this window has left.
std::optional<WindowSources::Answer> WindowSources::Await(Wanted wanted) {
  if (!IsTooLate()) Ask(wanted);
  const bool tells_names = TellsNames(wanted);
  std::chrono::nanoseconds& left = tells_names ? left_.symbols : left_.sources;
  const absl::MutexLock lock(&mutex_);
  const auto is_over = [this, wanted]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Find(wanted).has_value() || std::chrono::steady_clock::now() >= give_up_at_;
  };
  while (!is_over() && left.count() > 0 && (tells_names || !IsBehind())) {
    const Time begin = std::chrono::steady_clock::now();
    const auto longest = std::min<std::chrono::nanoseconds>({left, give_up_at_ - begin, kStep});
    mutex_.AwaitWithTimeout(absl::Condition(&is_over), absl::FromChrono(longest));
    left -= std::chrono::steady_clock::now() - begin;
  }
  return Find(wanted);
}

// A stripped Go program has its names where others have their lines.
bool WindowSources::TellsNames(Wanted wanted) const {
  return wanted.second == What::kSymbols || objects_.at(wanted.first).info->named_by_sources;
}

bool WindowSources::IsBehind() const {
  return parts_.is_behind && parts_.is_behind();
}

// What `read` returns, whose time counts.
template <typename Read>
auto WindowSources::InJitTime(Read read) -> decltype(read()) {
  const Time begin = std::chrono::steady_clock::now();
  auto result = read();
  left_.jit -= std::chrono::steady_clock::now() - begin;
  return result;
}

Result<UniqueFd> WindowSources::OpenPerfMap(ProcessKey process) {
  const auto known = perf_maps_.find(process);
  if (known == perf_maps_.end()) {
    return Fail(ErrorCode::kNotFound, "process {} has no perf map", process.pid.value());
  }
  if (!HasTime()) return NoTime();
  return InJitTime([&] { return known->second->Open(); });
}

Result<PerfMapEnd> WindowSources::ReadPerfMap(int fd, const PerfMapPart& part,
                                              OnPerfMapFunction on_function) {
  return InJitTime([&] { return parts_.store.indexer().PerfMapLines(fd, part, on_function); });
}

Result<UniqueFd> WindowSources::OpenJitDump(ProcessKey process) {
  const auto known = jit_dumps_.find(process);
  if (known == jit_dumps_.end()) {
    return Fail(ErrorCode::kNotFound, "process {} has no jitdump", process.pid.value());
  }
  if (!HasTime()) return NoTime();
  Result<UniqueFd> file = InJitTime([&] { return known->second->Open(); });
  if (!file && log_ != nullptr) log_->Failed("opening a jitdump", file.error());
  return file;
}

Result<JitDumpEnd> WindowSources::ReadJitDump(ProcessKey process, int fd, const JitDumpPart& part,
                                              OnJitCode on_code) {
  Result<JitDumpEnd> end =
      InJitTime([&] { return parts_.store.indexer().JitDumpRecords(fd, part, on_code); });
  if (end || log_ == nullptr) return end;
  Error error = end.error();
  log_->Failed("reading a jitdump",
               std::move(error).With(fmt::format("process {}", process.pid.value())));
  return end;
}

}  // namespace pyrometer
