// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_sources.h"

#include <algorithm>
#include <utility>

#include "base/await_until.h"
#include "base/file_identity.h"

namespace pyrometer {
namespace {

constexpr std::chrono::nanoseconds kNothingLeft(0);

Unresolved ReasonOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return Unresolved::kNotReady;
    case ErrorCode::kExhausted:
      return Unresolved::kNoRoom;
    case ErrorCode::kNotFound:
      return Unresolved::kFileGone;
    default:
      return Unresolved::kUnreadable;
  }
}

}  // namespace

void WindowSources::Use(ResolvedWindow& resolved) {
  objects_ = std::move(resolved.objects);
  perf_maps_ = std::move(resolved.perf_maps);
  ended_ = std::move(resolved.ended);
  waited_ = {};
  in_perf_maps_ = {};
  ahead_.clear();
  {
    const absl::MutexLock lock(&mutex_);
    for (const ObjectId object : resolved.unused) Forget(object);
    for (const auto& [object, reference] : objects_) {
      if (reference.file != nullptr && !known_.contains(object)) ahead_.push_back(object);
    }
  }
  AskAhead();
}

void WindowSources::Clear() {
  objects_.clear();
  perf_maps_.clear();
  ended_.clear();
  ahead_.clear();
}

// Unless the window has it still, or its symbols are being read.
void WindowSources::Forget(ObjectId object) {
  const auto known = known_.find(object);
  if (known == known_.end() || !known->second || objects_.contains(object)) return;
  known_.erase(known);
}

void WindowSources::GiveUpAt(MonotonicTime when) {
  const absl::MutexLock lock(&mutex_);
  give_up_at_ = when;
}

bool WindowSources::IsTooLate() const {
  const absl::MutexLock lock(&mutex_);
  return clock_.Now() >= give_up_at_;
}

std::optional<ObjectDescription> WindowSources::Describe(ObjectId object) {
  const auto known = objects_.find(object);
  if (known == objects_.end()) return std::nullopt;
  const ObjectInfo& info = *known->second.info;
  return ObjectDescription{.path = info.path,
                           .build_id = info.build_id,
                           .segments = info.segments,
                           .is_vdso = info.is_vdso};
}

SymbolAnswer WindowSources::Symbols(ObjectId object) {
  const auto reference = objects_.find(object);
  if (reference == objects_.end()) return {.table = nullptr, .reason = Unresolved::kFileGone};
  const ObjectRef& ref = reference->second;
  if (ref.file == nullptr) return WithoutFile(object, !ref.info->build_id.empty());
  AskAhead();
  // What was read before may have been dropped: then it is read again, once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Known answer = Await(object);
    if (!answer) break;
    std::shared_ptr<const SymbolTable> table = *answer ? store_.SymbolsOf(**answer) : nullptr;
    if (table != nullptr) return {.table = std::move(table)};
    {
      const absl::MutexLock lock(&mutex_);
      known_.erase(object);  // to be asked for again
    }
    if (!*answer) return {.table = nullptr, .reason = ReasonOf((*answer).error().code())};
  }
  return {.table = nullptr, .reason = Unresolved::kNotReady};
}

// Its symbols may have been read for an earlier window, while its file was still held. Without a
// build id it may have been written to since, and only the held file would tell.
SymbolAnswer WindowSources::WithoutFile(ObjectId object, bool has_build_id) {
  Known known;
  if (has_build_id) {
    const absl::MutexLock lock(&mutex_);
    known = Find(object);
  }
  auto table = known && *known ? store_.SymbolsOf(**known) : nullptr;
  return {.table = std::move(table), .reason = Unresolved::kFileGone};
}

void WindowSources::Ask(ObjectId object) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!known_.try_emplace(object).second) return;
    ++pending_;
  }
  const ObjectRef& reference = objects_.at(object);
  const Result<FileIdentity> identity = IdentityOf(reference.file->get());
  if (!identity) return Answered(object, identity.error());
  store_.AskSymbols(
      {.own = reference.file,
       .build_id = reference.info->build_id,
       .file_system = identity->device,
       .size = identity->size,
       .mapped = reference.info->identity},
      lifeline_.To([object](WindowSources& self, Result<ArtifactStore::ContentRef> answer) {
        self.Answered(object, std::move(answer));
      }));
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

void WindowSources::Answered(ObjectId object, Result<ArtifactStore::ContentRef> answer) {
  const absl::MutexLock lock(&mutex_);
  --pending_;
  known_[object] = std::move(answer);
}

WindowSources::Known WindowSources::Find(ObjectId object) const {
  const auto known = known_.find(object);
  return known == known_.end() ? Known() : known->second;
}

// Nothing, if there is no answer in the time that this window has left.
WindowSources::Known WindowSources::Await(ObjectId object) {
  if (!IsTooLate()) Ask(object);
  const MonotonicTime begin = clock_.Now();
  const MonotonicTime enough = After(begin, std::max(most_waiting_ - waited_, kNothingLeft));
  const absl::MutexLock lock(&mutex_);
  MonotonicTime until = enough;
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Find(object).has_value() || give_up_at_ < until;
  };
  do {
    until = std::min(until, give_up_at_);  // of which it may be told while it waits
    AwaitUntil(mutex_, clock_, until, is_over);
  } while (give_up_at_ < until);
  waited_ += Between(begin, clock_.Now());
  return Find(object);
}

Result<UniqueFd> WindowSources::Open(ProcessKey process) {
  const auto known = perf_maps_.find(process);
  if (known == perf_maps_.end() || IsTooLate()) {
    return Fail(ErrorCode::kNotFound, "process {} has no perf map", process.pid.value());
  }
  return known->second->Open();
}

Result<std::optional<PerfMapFunction>> WindowSources::Read(int fd, const PerfMapPart& part,
                                                           PerfMapSink sink) {
  const MonotonicTime begin = clock_.Now();
  MonotonicTime until =
      After(begin, std::min<std::chrono::nanoseconds>(
                       kMostOfPerfMap, std::max(kMostOfPerfMaps - in_perf_maps_, kNothingLeft)));
  {
    const absl::MutexLock lock(&mutex_);
    until = std::min(until, give_up_at_);
  }
  if (until <= begin) return Fail(ErrorCode::kIo, "no time is left to read perf maps");
  Result<std::optional<PerfMapFunction>> last =
      indexer_->PerfMapLines(fd, part, Between(begin, until), sink);
  in_perf_maps_ += Between(begin, clock_.Now());
  return last;
}

}  // namespace pyrometer
