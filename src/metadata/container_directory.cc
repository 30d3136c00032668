// SPDX-License-Identifier: Apache-2.0
#include "metadata/container_directory.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/await_until.h"

namespace pyrometer {
namespace {

constexpr uint32_t kMostDoublings = 20;  // of a pause

// No try soon after is likely to be better.
bool IsFinal(const Error& error) {
  return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kPermission ||
         error.code() == ErrorCode::kUnsupported;
}

}  // namespace

ContainerDirectory::ContainerDirectory(Options options, std::unique_ptr<ContainerSource> source,
                                       const Clock& clock)
    : options_(std::move(options)),
      source_(std::move(source)),
      clock_(clock),
      thread_([this] { Run(); }) {
  source_->TellChanges([this] { Want(); });
}

ContainerDirectory::~ContainerDirectory() {
  source_->Cancel();
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

bool ContainerDirectory::IsAwaited(const Entry& entry) const {
  return entry.metadata == nullptr && !hopeless_ && entry.misses < options_.most_misses;
}

ContainerDirectory::Answer ContainerDirectory::Find(std::string_view id) {
  const absl::MutexLock lock(&mutex_);
  const MonotonicTime now = clock_.Now();
  auto known = entries_.find(id);
  if (known == entries_.end()) {
    if (entries_.size() >= options_.most_containers) Forget(now);
    known = entries_.try_emplace(std::string(id), Entry{.first_use = now, .last_use = now}).first;
    wanted_ = true;
  }
  Entry& entry = known->second;
  entry.last_use = now;
  if (entry.metadata != nullptr) {
    return {.state = Answer::State::kKnown, .metadata = entry.metadata};
  }
  return {.state = IsAwaited(entry) ? Answer::State::kAwaited : Answer::State::kUnknown};
}

ContainerDirectory::Counters ContainerDirectory::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters counters{.listings = listings_, .failures = failed_};
  for (const auto& [id, entry] : entries_) {
    if (entry.metadata != nullptr) {
      ++counters.known;
    } else if (IsAwaited(entry)) {
      ++counters.awaited;
    } else {
      ++counters.unknown;
    }
  }
  return counters;
}

void ContainerDirectory::Run() {
  ::pthread_setname_np(::pthread_self(), "containers");
  bool failed = false;
  while (AwaitWork()) {
    const MonotonicTime begun = clock_.Now();
    const std::optional<Error> error = TakeAnswer(source_->List(), begun);
    if (IsStopping()) return;
    if (options_.told && (error || failed)) options_.told(error ? &*error : nullptr);
    failed = error.has_value();
  }
}

std::optional<Error> ContainerDirectory::TakeAnswer(Result<std::vector<ContainerMetadata>> answer,
                                                    MonotonicTime begun) {
  const absl::MutexLock lock(&mutex_);
  ++listings_;
  if (!answer) {
    TakeFailure(answer.error());
    return std::move(answer).error();
  }
  Take(*std::move(answer), begun);
  return std::nullopt;
}

bool ContainerDirectory::IsStopping() const {
  const absl::MutexLock lock(&mutex_);
  return stopping_;
}

void ContainerDirectory::Want() {
  const absl::MutexLock lock(&mutex_);
  wanted_ = true;
  next_ = std::min(next_, After(clock_.Now(), options_.pause));
}

bool ContainerDirectory::AwaitWork() {
  const absl::MutexLock lock(&mutex_);
  const auto has_work = [this]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return wanted_ || stopping_; };
  if (later_) {
    AwaitUntil(mutex_, clock_, *later_, has_work);
  } else {
    mutex_.Await(absl::Condition(&has_work));
  }
  while (clock_.Now() < next_ && !stopping_) {
    const auto is_sooner = [this, before = next_]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || next_ < before;
    };
    AwaitUntil(mutex_, clock_, next_, is_sooner);
  }
  wanted_ = false;  // who is asked for from here on may have come too late for this listing
  return !stopping_;
}

void ContainerDirectory::Take(std::vector<ContainerMetadata> list, MonotonicTime begun) {
  const MonotonicTime now = clock_.Now();
  failures_ = 0;
  hopeless_ = false;
  next_ = After(now, options_.pause);
  later_.reset();
  for (ContainerMetadata& container : list) {
    Entry& entry =
        entries_.try_emplace(container.id, Entry{.first_use = now, .last_use = now}).first->second;
    entry.last_use = now;
    // What names a container never changes; a pod's labels may, where a runtime can do that.
    if (entry.metadata != nullptr && *entry.metadata == container) continue;
    entry.metadata = std::make_shared<const ContainerMetadata>(std::move(container));
    ++changes_;
  }
  for (auto& [id, entry] : entries_) {
    if (entry.metadata == nullptr && entry.first_use <= begun) ++entry.misses;
    if (IsAwaited(entry)) {
      wanted_ = true;
    } else if (entry.metadata == nullptr) {
      AskLater(entry, now);
    }
  }
  Forget(now);
}

void ContainerDirectory::AskLater(const Entry& entry, MonotonicTime now) {
  constexpr int kLeastPauses = 4;
  const std::chrono::nanoseconds age = Between(entry.first_use, now);
  if (age >= options_.longest_delay) return;
  const MonotonicTime due = After(now, std::max(age, kLeastPauses * options_.pause));
  later_ = later_ ? std::min(*later_, due) : due;
}

void ContainerDirectory::TakeFailure(const Error& error) {
  ++failed_;
  ++failures_;
  hopeless_ = IsFinal(error) || failures_ >= options_.most_failures;
  std::chrono::nanoseconds pause = options_.longest_pause;
  if (!IsFinal(error) && failures_ < kMostDoublings) {
    pause = std::min(pause, std::chrono::nanoseconds(options_.pause.count() << failures_));
  }
  next_ = After(clock_.Now(), pause);
  wanted_ = true;
}

// Of more than there may be, an eighth at a time goes, since finding the oldest looks at all.
void ContainerDirectory::Forget(MonotonicTime now) {
  const MonotonicTime horizon = Before(now, options_.keep);
  std::erase_if(entries_, [&](const auto& e) { return e.second.last_use < horizon; });
  if (entries_.size() < options_.most_containers) return;
  std::vector<MonotonicTime> uses;
  uses.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) uses.push_back(entry.last_use);
  size_t gone = entries_.size() - options_.most_containers + options_.most_containers / 8 + 1;
  gone = std::min(gone, uses.size());
  const auto last = uses.begin() + static_cast<std::ptrdiff_t>(gone - 1);
  std::ranges::nth_element(uses, last);
  std::erase_if(entries_, [&](const auto& e) {
    return e.second.last_use <= *last && gone > 0 && gone-- > 0;
  });
}

}  // namespace pyrometer
