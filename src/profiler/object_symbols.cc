// SPDX-License-Identifier: Apache-2.0
#include "profiler/object_symbols.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/await_until.h"
#include "base/file_identity.h"
#include "foreign/reading_budget.h"

namespace pyrometer {

// What the file itself says stays so.
bool ObjectSymbols::MayEndOtherwise(const Error& error) {
  return error.code() != ErrorCode::kMalformed && error.code() != ErrorCode::kUnsupported &&
         error.code() != ErrorCode::kInvalid;
}

void ObjectSymbols::ReadAhead(std::span<const SampledObject> objects) {
  {
    const absl::MutexLock lock(&mutex_);
    for (const SampledObject& object : objects) {
      if (is_ahead_over_ || ahead_.size() >= kMostWaiting) break;
      if (KnownOf(object) == nullptr) ahead_.push_back(object);
    }
  }
  ReadMore();
}

void ObjectSymbols::StopReadingAhead() {
  std::deque<SampledObject> dropped;  // their files are closed without the lock
  const absl::MutexLock lock(&mutex_);
  is_ahead_over_ = true;
  dropped.swap(ahead_);
}

void ObjectSymbols::ReadForWindow(std::vector<SampledObject> objects) {
  {
    const absl::MutexLock lock(&mutex_);
    for_window_.clear();
    for (SampledObject& object : objects) {
      if (const Known* const known = KnownOf(object)) {
        const Answer& answer = known->answer;
        if (!answer || *answer || !MayEndOtherwise(answer->error())) continue;
        known_.erase(object.id);
      }
      for_window_.push_back(std::move(object));
    }
  }
  ReadMore();
}

bool ObjectSymbols::IsTooLate() const {
  return clock_.Now() >= give_up_at_;
}

// Null if nothing is: what is known of an earlier object of that id does not count.
ObjectSymbols::Known* ObjectSymbols::KnownOf(const SampledObject& object) {
  const auto known = known_.find(object.id);
  const bool is_of_it = known != known_.end() && known->second.info == object.object.info;
  return is_of_it ? &known->second : nullptr;
}

// False if it is known, or being read.
bool ObjectSymbols::Begin(const SampledObject& object, bool is_ahead) {
  if (KnownOf(object) != nullptr) return false;
  known_[object.id] = {.info = object.object.info, .answer = {}};
  ++pending_;
  pending_ahead_ += is_ahead ? 1 : 0;
  return true;
}

// What is to be read next, if anything may be. What a window needs comes first.
std::optional<ObjectSymbols::Question> ObjectSymbols::Next() {
  if (IsTooLate()) return std::nullopt;
  const auto take = [&](std::deque<SampledObject>& from, bool is_ahead)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> std::optional<Question> {
    while (!from.empty()) {
      SampledObject first = std::move(from.front());
      from.pop_front();
      if (Begin(first, is_ahead)) return Question{.of = std::move(first), .is_ahead = is_ahead};
    }
    return std::nullopt;
  };
  if (pending_ >= kMostForWindow) return std::nullopt;
  if (auto next = take(for_window_, false)) return next;
  if (pending_ahead_ >= most_ahead_) return std::nullopt;
  return take(ahead_, true);
}

// An answer may come before the question returns, and leads here: whoever is here already goes on.
void ObjectSymbols::ReadMore() {
  {
    const absl::MutexLock lock(&mutex_);
    if (std::exchange(is_reading_more_, true)) return;
  }
  for (;;) {
    std::optional<Question> next;
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

void ObjectSymbols::Ask(const Question& question) {
  const auto& [file_info, file] = question.of.object;
  const Result<FileIdentity> identity = IdentityOf(file->get());
  if (!identity) return Answered(question, identity.error());
  ArtifactStore::Source source{.own = file,
                               .build_id = file_info->build_id,
                               .account = AccountOf(file->get()),
                               .size = identity->size,
                               .mapped = file_info->identity};
  ArtifactStore::OnAnswer answered =
      lifeline_.To([question](ObjectSymbols& self, Result<ArtifactStore::ContentRef> answer) {
        self.Answered(question, std::move(answer));
      });
  if (debug_files_ == nullptr) return store_.AskSymbols(std::move(source), std::move(answered));
  AskWithSources(question.of, std::move(source), std::move(answered));
}

void ObjectSymbols::AskWithSources(const SampledObject& object, ArtifactStore::Source source,
                                   ArtifactStore::OnAnswer on_answer) {
  const auto search = debug_files_->Prepare(object.id, *object.object.info, object.object.file);
  if (!search) return on_answer(search.error());
  debug_files_->Find(*search,
                     lifeline_.To([source = std::move(source), on_answer = std::move(on_answer)](
                                      ObjectSymbols& self, DebugFiles::Found found) {
                       if (!found.is_own && found.debug == nullptr) {
                         return on_answer(Fail(ErrorCode::kNotFound, "no debug information"));
                       }
                       ArtifactStore::Source both = source;
                       both.debug = std::move(found.debug);
                       both.alternate = std::move(found.alternate);
                       self.store_.AskSources(std::move(both), on_answer);
                     }));
}

void ObjectSymbols::Count(const Result<ArtifactStore::ContentRef>& answer, bool is_ahead) {
  if (answer) {
    ++counters_.read;
    counters_.read_ahead += is_ahead ? 1 : 0;
  } else if (answer.error().code() == ErrorCode::kNotFound) {
    ++counters_.absent;
  } else {
    ++counters_.failed;
  }
}

void ObjectSymbols::Answered(const Question& question, Result<ArtifactStore::ContentRef> answer) {
  bool is_known = false;
  {
    const absl::MutexLock lock(&mutex_);
    --pending_;
    pending_ahead_ -= question.is_ahead ? 1 : 0;
    Count(answer, question.is_ahead);
    // Else it was forgotten meanwhile.
    if (Known* const known = KnownOf(question.of)) {
      known->answer = answer;
      is_known = true;
    }
  }
  if (on_read_ && answer && is_known) on_read_(question.of, *answer);
  ReadMore();
}

ObjectSymbols::Answer ObjectSymbols::FindLocked(const SampledObject& object) const {
  const auto known = known_.find(object.id);
  const bool is_of_it = known != known_.end() && known->second.info == object.object.info;
  return is_of_it ? known->second.answer : Answer();
}

bool ObjectSymbols::IsAsked(const SampledObject& object) const {
  const absl::MutexLock lock(&mutex_);
  const auto known = known_.find(object.id);
  return known != known_.end() && known->second.info == object.object.info;
}

ObjectSymbols::Answer ObjectSymbols::Find(const SampledObject& object) const {
  const absl::MutexLock lock(&mutex_);
  return FindLocked(object);
}

ObjectSymbols::Answer ObjectSymbols::Await(const SampledObject& object, MonotonicTime until) {
  bool is_first = false;
  {
    const absl::MutexLock lock(&mutex_);
    is_first = !IsTooLate() && Begin(object, false);
  }
  if (is_first) Ask({.of = object, .is_ahead = false});
  const absl::MutexLock lock(&mutex_);
  MonotonicTime end = until;
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return FindLocked(object).has_value() || give_up_at_ < end;
  };
  do {
    end = std::min(end, give_up_at_);  // of which it may be told while it waits
    AwaitUntil(mutex_, clock_, end, is_over);
  } while (give_up_at_ < end);
  return FindLocked(object);
}

void ObjectSymbols::Forget(std::span<const ObjectId> objects) {
  if (objects.empty()) return;
  const absl::flat_hash_set<ObjectId> forgotten(objects.begin(), objects.end());
  std::vector<SampledObject> dropped;  // their files are closed without the lock
  const absl::MutexLock lock(&mutex_);
  for (const ObjectId object : objects) known_.erase(object);
  for (std::deque<SampledObject>* const queue : {&for_window_, &ahead_}) {
    const auto first = std::stable_partition(
        queue->begin(), queue->end(), [&](const auto& o) { return !forgotten.contains(o.id); });
    std::move(first, queue->end(), std::back_inserter(dropped));
    queue->erase(first, queue->end());
  }
}

void ObjectSymbols::GiveUpAt(MonotonicTime when) {
  const absl::MutexLock lock(&mutex_);
  give_up_at_ = when;
}

size_t ObjectSymbols::pending() const {
  const absl::MutexLock lock(&mutex_);
  return pending_;
}

ObjectSymbols::Counters ObjectSymbols::counters() const {
  const absl::MutexLock lock(&mutex_);
  return counters_;
}

}  // namespace pyrometer
