// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_sources.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

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
  jit_names_ = {.perf_maps = std::move(resolved.perf_maps),
                .inherited = std::move(resolved.inherited),
                .jit_dumps = std::move(resolved.jit_dumps)};
  ended_ = std::move(resolved.ended);
  waited_ = {};
  waited_for_sources_ = {};
  in_jit_names_ = {};
  without_debug_info_.clear();
  std::vector<ObjectId> forgotten;
  std::ranges::copy_if(resolved.unused, std::back_inserter(forgotten),
                       [this](ObjectId object) { return !objects_.contains(object); });
  symbols_.Forget(forgotten);
  if (debug_info_ != nullptr) debug_info_->Forget(forgotten);
  for (const ObjectId object : forgotten) waited_for_.erase(object);
  std::vector<SampledObject> needed;
  for (const auto& [object, reference] : objects_) {
    if (reference.file != nullptr) needed.push_back({object, reference});
  }
  symbols_.ReadForWindow(std::move(needed));
}

void WindowSources::Clear() {
  objects_.clear();
  jit_names_ = {};
  dumps_.clear();
  ended_.clear();
  symbols_.ReadForWindow({});
}

void WindowSources::GiveUpAt(MonotonicTime when) {
  symbols_.GiveUpAt(when);
  if (debug_info_ != nullptr) debug_info_->GiveUpAt(when);
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

SymbolAnswer WindowSources::Symbols(ObjectId object, DebugInfo debug_info) {
  const auto reference = objects_.find(object);
  if (reference == objects_.end()) return {.table = nullptr, .reason = Unresolved::kFileGone};
  const ObjectRef& ref = reference->second;
  if (ref.file == nullptr) return WithoutFile({object, ref});
  // What was read before may have been dropped: then it is read again, once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ObjectSymbols::Answer answer = Await({object, ref});
    if (!answer) break;
    std::shared_ptr<const SymbolTable> table = TableOf(answer);
    const bool is_all = debug_info_ == nullptr || debug_info == DebugInfo::kLeftOut;
    if (table != nullptr && is_all) return {.table = std::move(table)};
    if (table != nullptr) return WithSources({object, ref}, std::move(table));
    if (!*answer) return {.table = nullptr, .reason = ReasonOf((*answer).error().code())};
    symbols_.Forget(std::span(&object, 1));  // to be asked for again
  }
  return {.table = nullptr, .reason = Unresolved::kNotReady};
}

// Its symbols may have been read before, while its file was still held. Without a build id it may
// have been written to since, and only the held file would tell.
SymbolAnswer WindowSources::WithoutFile(const SampledObject& object) {
  const bool has_build_id = !object.object.info->build_id.empty();
  std::shared_ptr<const SymbolTable> table;
  if (has_build_id && debug_info_ != nullptr) table = TableOf(debug_info_->Find(object));
  if (has_build_id && table == nullptr) table = TableOf(symbols_.Find(object));
  return {.table = std::move(table), .reason = Unresolved::kFileGone};
}

// Null if they could not be read, or were dropped.
std::shared_ptr<const SymbolTable> WindowSources::TableOf(const ObjectSymbols::Answer& answer) {
  return answer && *answer ? store_.SymbolsOf(**answer) : nullptr;
}

// Those that are there now, if debug information that tells more is not.
SymbolAnswer WindowSources::WithSources(const SampledObject& object,
                                        std::shared_ptr<const SymbolTable> symbols) {
  SymbolAnswer preliminary{.table = std::move(symbols)};
  if (preliminary.table->layout().sources > 0) return preliminary;  // a Go program has them itself
  preliminary.better_after = 1;
  const ObjectSymbols::Answer answer = AwaitSources(object);
  if (!answer) {
    const bool has_any = preliminary.table->unread_debug_info() > 0;
    if (has_any || debug_info_->IsAsked(object)) without_debug_info_.insert(object.id);
    return preliminary;
  }
  without_debug_info_.erase(object.id);
  if (auto table = TableOf(answer)) return {.table = std::move(table), .has_debug_info = true};
  // It was dropped before it was used, or could not be read.
  const bool may_help = *answer || ObjectSymbols::MayEndOtherwise((*answer).error());
  preliminary.better_after = 0;
  if (may_help && waited_for_[object.id]++ < kMostRetries) {
    preliminary.better_after = kRetryWindows;
    debug_info_->Forget(std::span(&object.id, 1));
  }
  return preliminary;
}

// A window waits for what it asks for first, or no window before it has waited for.
ObjectSymbols::Answer WindowSources::AwaitSources(const SampledObject& object) {
  const bool is_asked = debug_info_->IsAsked(object);
  const bool is_full = !is_asked && debug_info_->pending() >= kMostPending;
  const auto left = std::max(options_.most_waiting_for_sources - waited_for_sources_, kNothingLeft);
  if (is_full || (is_asked && waited_for_.contains(object.id))) return debug_info_->Find(object);
  if (left > kNothingLeft) waited_for_.try_emplace(object.id, 0);
  const MonotonicTime begin = clock_.Now();
  ObjectSymbols::Answer answer = debug_info_->Await(object, After(begin, left));
  waited_for_sources_ += Between(begin, clock_.Now());
  return answer;
}

// Nothing, if there is no answer in the time that this window has left.
ObjectSymbols::Answer WindowSources::Await(const SampledObject& object) {
  const MonotonicTime begin = clock_.Now();
  const auto left = std::max(options_.most_waiting - waited_, kNothingLeft);
  ObjectSymbols::Answer answer = symbols_.Await(object, After(begin, left));
  waited_ += Between(begin, clock_.Now());
  return answer;
}

Result<UniqueFd> WindowSources::Open(ProcessKey process) {
  const auto known = jit_names_.perf_maps.find(process);
  if (known == jit_names_.perf_maps.end() || IsTooLate()) {
    return Fail(ErrorCode::kNotFound, "process {} has no perf map", process.pid.value());
  }
  return known->second->Open();
}

std::vector<ProcessKey> WindowSources::InheritsFrom(ProcessKey process) {
  const auto known = jit_names_.inherited.find(process);
  return known == jit_names_.inherited.end() ? std::vector<ProcessKey>() : known->second;
}

std::vector<JitDumpSource::Use> WindowSources::DumpsOf(ProcessKey process) {
  std::vector<JitDumpSource::Use> uses;
  const auto known = jit_names_.jit_dumps.find(process);
  if (known == jit_names_.jit_dumps.end()) return uses;
  for (const JitDumpUse& use : known->second) {
    dumps_[use.file->number()] = use.file;
    uses.push_back({.file = use.file->number(), .until = use.until});
  }
  return uses;
}

Result<UniqueFd> WindowSources::OpenDump(File file) {
  const auto known = dumps_.find(file);
  if (known == dumps_.end() || IsTooLate()) return Fail(ErrorCode::kNotFound, "no such jitdump");
  return known->second->Open();
}

Result<std::optional<PerfMapFunction>> WindowSources::Read(int fd, const PerfMapPart& part,
                                                           PerfMapSink sink) {
  return ReadJitNames([&](std::chrono::nanoseconds at_most) {
    return indexer_->PerfMapLines(fd, part, at_most, sink);
  });
}

Result<bool> WindowSources::Read(int fd, const JitDumpPart& part, JitDumpSink sink) {
  return ReadJitNames([&](std::chrono::nanoseconds at_most) {
    return indexer_->JitDumpRecords(fd, part, at_most, sink);
  });
}

// `question` is asked to take no longer than it is told.
template <typename Question>
auto WindowSources::ReadJitNames(Question question)
    -> decltype(question(std::chrono::nanoseconds())) {
  const MonotonicTime begin = clock_.Now();
  MonotonicTime until =
      After(begin, std::min<std::chrono::nanoseconds>(
                       kMostOfOneFile, std::max(kMostOfJitNames - in_jit_names_, kNothingLeft)));
  {
    const absl::MutexLock lock(&mutex_);
    until = std::min(until, give_up_at_);
  }
  if (until <= begin) return Fail(ErrorCode::kIo, "no time is left to read what a JIT has written");
  auto answer = question(Between(begin, until));
  in_jit_names_ += Between(begin, clock_.Now());
  return answer;
}

}  // namespace pyrometer
