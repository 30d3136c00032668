// SPDX-License-Identifier: Apache-2.0
#include "profiler/object_symbols.h"

#include <algorithm>
#include <utility>

#include "base/await_until.h"
#include "base/file_identity.h"

namespace pyrometer {
namespace {

// What the file itself says stays so.
bool MayEndOtherwise(const Error& error) {
  return error.code() != ErrorCode::kMalformed && error.code() != ErrorCode::kUnsupported &&
         error.code() != ErrorCode::kInvalid;
}

}  // namespace

void ObjectSymbols::ReadAhead(std::span<const SampledObject> objects) {
  {
    const absl::MutexLock lock(&mutex_);
    for (const SampledObject& object : objects) {
      if (ahead_.size() >= kMostWaiting) break;
      if (!known_.contains(object.id)) ahead_.push_back(object);
    }
  }
  ReadMore();
}

void ObjectSymbols::StopReadingAhead() {
  std::deque<SampledObject> dropped;  // their files are closed without the lock
  const absl::MutexLock lock(&mutex_);
  dropped.swap(ahead_);
}

void ObjectSymbols::ReadForWindow(std::vector<SampledObject> objects) {
  {
    const absl::MutexLock lock(&mutex_);
    for_window_.clear();
    for (SampledObject& object : objects) {
      const auto known = known_.find(object.id);
      if (known != known_.end()) {
        const Answer& answer = known->second.answer;
        if (!answer || *answer || !MayEndOtherwise(answer->error())) continue;
        known_.erase(known);
      }
      for_window_.push_back(std::move(object));
    }
  }
  ReadMore();
}

bool ObjectSymbols::IsTooLate() const {
  return clock_.Now() >= give_up_at_;
}

// False if it is known, or being read.
bool ObjectSymbols::Begin(ObjectId object, bool is_ahead) {
  if (!known_.try_emplace(object, Reading{.answer = {}, .is_ahead = is_ahead}).second) return false;
  ++pending_;
  pending_ahead_ += is_ahead ? 1 : 0;
  return true;
}

// What is to be read next, if anything may be. What a window needs comes first.
std::optional<SampledObject> ObjectSymbols::Next() {
  if (IsTooLate()) return std::nullopt;
  const auto take = [&](std::deque<SampledObject>& from, bool is_ahead)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> std::optional<SampledObject> {
    while (!from.empty()) {
      SampledObject first = std::move(from.front());
      from.pop_front();
      if (Begin(first.id, is_ahead)) return first;
    }
    return std::nullopt;
  };
  if (pending_ >= kMostForWindow) return std::nullopt;
  if (auto next = take(for_window_, false)) return next;
  if (pending_ahead_ >= kMostAhead) return std::nullopt;
  return take(ahead_, true);
}

// An answer may come before the question returns, and leads here: whoever is here already goes on.
void ObjectSymbols::ReadMore() {
  {
    const absl::MutexLock lock(&mutex_);
    if (std::exchange(is_reading_more_, true)) return;
  }
  for (;;) {
    std::optional<SampledObject> next;
    {
      const absl::MutexLock lock(&mutex_);
      next = Next();
      if (!next) {
        is_reading_more_ = false;
        return;
      }
    }
    Ask(*next);
  }
}

void ObjectSymbols::Ask(const SampledObject& object) {
  const ObjectRef& reference = object.object;
  const Result<FileIdentity> identity = IdentityOf(reference.file->get());
  if (!identity) return Answered(object.id, identity.error());
  store_.AskSymbols(
      {.own = reference.file,
       .build_id = reference.info->build_id,
       .file_system = identity->device,
       .size = identity->size,
       .mapped = reference.info->identity},
      lifeline_.To([id = object.id](ObjectSymbols& self, Result<ArtifactStore::ContentRef> answer) {
        self.Answered(id, std::move(answer));
      }));
}

void ObjectSymbols::Answered(ObjectId object, Result<ArtifactStore::ContentRef> answer) {
  {
    const absl::MutexLock lock(&mutex_);
    Reading& reading = known_[object];
    --pending_;
    pending_ahead_ -= reading.is_ahead ? 1 : 0;
    read_ahead_ += reading.is_ahead && answer ? 1 : 0;
    reading.answer = std::move(answer);
  }
  ReadMore();
}

ObjectSymbols::Answer ObjectSymbols::FindLocked(ObjectId object) const {
  const auto known = known_.find(object);
  return known == known_.end() ? Answer() : known->second.answer;
}

ObjectSymbols::Answer ObjectSymbols::Find(ObjectId object) const {
  const absl::MutexLock lock(&mutex_);
  return FindLocked(object);
}

ObjectSymbols::Answer ObjectSymbols::Await(const SampledObject& object, MonotonicTime until) {
  bool is_first = false;
  {
    const absl::MutexLock lock(&mutex_);
    is_first = !IsTooLate() && Begin(object.id, false);
  }
  if (is_first) Ask(object);
  const absl::MutexLock lock(&mutex_);
  MonotonicTime end = until;
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return FindLocked(object.id).has_value() || give_up_at_ < end;
  };
  do {
    end = std::min(end, give_up_at_);  // of which it may be told while it waits
    AwaitUntil(mutex_, clock_, end, is_over);
  } while (give_up_at_ < end);
  return FindLocked(object.id);
}

void ObjectSymbols::Forget(ObjectId object) {
  const absl::MutexLock lock(&mutex_);
  const auto known = known_.find(object);
  if (known != known_.end() && known->second.answer) known_.erase(known);
}

void ObjectSymbols::GiveUpAt(MonotonicTime when) {
  const absl::MutexLock lock(&mutex_);
  give_up_at_ = when;
}

uint64_t ObjectSymbols::read_ahead() const {
  const absl::MutexLock lock(&mutex_);
  return read_ahead_;
}

}  // namespace pyrometer
