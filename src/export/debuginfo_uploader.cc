// SPDX-License-Identifier: Apache-2.0
#include "export/debuginfo_uploader.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/stoppable_sleep.h"
#include "export/file_pieces.h"
#include "profile/text.h"

namespace pyrometer {
namespace {

constexpr int kMostDoublings = 9;  // of five minutes: a day

std::string WhatOf(const std::string& sink) {
  return "debug information for sink " + sink;
}

// Files of programs; not the vDSO, nor what was never a file.
bool IsFile(const Location& location) {
  return location.origin == CodeOrigin::kUser && location.object != nullptr &&
         location.object->path.starts_with('/');
}

std::chrono::nanoseconds TimeFor(uint64_t bytes, uint64_t bytes_per_second) {
  constexpr double kNanoseconds = 1e9;
  return std::chrono::nanoseconds(static_cast<int64_t>(kNanoseconds * static_cast<double>(bytes) /
                                                       static_cast<double>(bytes_per_second)));
}

}  // namespace

Result<std::unique_ptr<DebuginfoUploader>> DebuginfoUploader::Make(Options options,
                                                                   ObjectFiles& files,
                                                                   const Clock& clock, Log& log) {
  ASSIGN_OR_RETURN(std::unique_ptr<DebuginfoClient> client, DebuginfoClient::Make(options.server));
  return std::unique_ptr<DebuginfoUploader>(
      new DebuginfoUploader(std::move(options), std::move(client), files, clock, log));
}

DebuginfoUploader::DebuginfoUploader(Options options, std::unique_ptr<DebuginfoClient> client,
                                     ObjectFiles& files, const Clock& clock, Log& log)
    : options_(std::move(options)),
      client_(std::move(client)),
      files_(files),
      clock_(clock),
      log_(log),
      backoff_(options_.retry, 1, std::random_device()()),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void DebuginfoUploader::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  thread_.request_stop();
  client_->Cancel();
  if (thread_.joinable()) thread_.join();
}

void DebuginfoUploader::Offer(const std::vector<Profile>& profiles) {
  const MonotonicTime now = clock_.Now();
  absl::flat_hash_set<const CodeObject*> seen;
  for (const Profile& profile : profiles) {
    for (const LocationRef& location : profile.locations) {
      if (!IsFile(*location) || !seen.insert(location->object.get()).second) continue;
      const std::string id = ContentIdOf(*location->object);
      if (id.empty()) continue;
      const absl::MutexLock lock(&mutex_);
      if (queue_.size() >= kMostWaiting) return;
      if (!IsWorthAsking(id, now)) continue;
      known_[id].is_waiting = true;
      queue_.push_back(location->object);
    }
  }
}

bool DebuginfoUploader::IsWorthAsking(const std::string& id, MonotonicTime now) {
  const auto known = known_.find(id);
  if (known == known_.end()) {
    if (known_.size() >= kMostKnown) known_.clear();
    return true;
  }
  const Known& of = known->second;
  return !of.is_waiting && of.state != State::kRefused && now >= of.until;
}

bool DebuginfoUploader::HasNames(const CodeObject& object) const {
  const std::string id = ContentIdOf(object);
  const absl::MutexLock lock(&mutex_);
  const auto known = known_.find(id);
  return known != known_.end() && known->second.state == State::kHasIt;
}

void DebuginfoUploader::Run(const std::stop_token& stop) {
  options_.on_thread_start();
  while (const Object object = Next()) {
    WaitForServer(stop);
    Ask(*object, stop);
    SleepFor(options_.between_questions, stop);
  }
}

// Null: it is to stop.
DebuginfoUploader::Object DebuginfoUploader::Next() {
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopping_ || !queue_.empty();
  };
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&is_over));
  if (is_stopping_) return nullptr;
  Object object = std::move(queue_.front());
  queue_.pop_front();
  return object;
}

void DebuginfoUploader::WaitForServer(const std::stop_token& stop) const {
  const MonotonicTime now = clock_.Now();
  if (!backoff_.Admits(now, 0)) SleepFor(Between(now, backoff_.next()), stop);
}

void DebuginfoUploader::Ask(const CodeObject& object, const std::stop_token& stop) {
  const DebuginfoId id{.text = ContentIdOf(object), .is_hash = object.build_id.empty()};
  const auto wish = client_->Ask(id);
  if (!wish) return Fail(id, wish.error(), {});
  backoff_.Answered(backoff_.period());
  {
    const absl::MutexLock lock(&mutex_);
    ++counters_.asked;
  }
  switch (*wish) {
    case DebuginfoClient::Wish::kHasIt:
      return Remember(id, State::kHasIt, options_.has_it_for);
    case DebuginfoClient::Wish::kAtWork:
      return Remember(id, State::kLater, options_.at_work_for);
    case DebuginfoClient::Wish::kWanted:
      return Send(object, id, stop);
  }
}

void DebuginfoUploader::Send(const CodeObject& object, const DebuginfoId& id,
                             const std::stop_token& stop) {
  const auto give_up = [&](const char* reason, State state) {
    CountFailure(reason);
    Remember(id, state, options_.at_work_for);
  };
  std::shared_ptr<const UniqueFd> fd = files_.Find(object, stop);
  if (fd == nullptr) return give_up("no_file", State::kLater);
  const Result<FilePieces> pieces = FilePieces::Open(std::move(fd), workers_, stop);
  if (!pieces) return give_up("unreadable", State::kLater);
  if (pieces->size() > options_.max_size) return give_up("too_large", State::kRefused);
  const Result<FileHash> hash = pieces->Hash();
  if (!hash) return give_up("unreadable", State::kLater);
  uint64_t sent = 0;
  const auto read = [&](uint64_t offset, std::span<std::byte> out) {
    sent += out.size();
    return pieces->Read(offset, out);
  };
  const Receipt receipt =
      client_->Upload(id, {.size = pieces->size(), .hash = hash->ToHex(), .read = read});
  Conclude(object, id, pieces->size(), receipt);
  SleepFor(TimeFor(sent, options_.bytes_per_second), stop);
}

void DebuginfoUploader::Conclude(const CodeObject& object, const DebuginfoId& id, uint64_t size,
                                 const Receipt& receipt) {
  if (receipt.outcome != Outcome::kDelivered) return Fail(id, receipt, options_.at_work_for);
  log_.Tell(WhatOf(options_.name), fmt::format("sent {} bytes for {}", size, object.path));
  {
    const absl::MutexLock lock(&mutex_);
    ++counters_.uploaded;
    counters_.uploaded_bytes += size;
  }
  Remember(id, State::kHasIt, options_.has_it_for);
}

void DebuginfoUploader::Fail(const DebuginfoId& id, const Receipt& receipt,
                             std::chrono::nanoseconds pause) {
  if (receipt.reason == "already_exists") {
    return Remember(id, State::kHasIt, options_.has_it_for);
  }
  CountFailure(receipt.reason);
  if (receipt.reason == "failed_precondition" || receipt.reason == "cancelled") {
    return Remember(id, State::kLater, pause);
  }
  log_.Warn(WhatOf(options_.name), receipt.message);
  if (receipt.reason == "invalid_argument" || receipt.reason == "bad_answer") {
    return Remember(id, State::kRefused, {});
  }
  // A server without this service may get it.
  const bool is_missing = receipt.reason == "unimplemented";
  Remember(id, State::kLater, is_missing ? options_.has_it_for : pause);
  backoff_.Failed(backoff_.period(), clock_.Now(), receipt.retry_after);
}

void DebuginfoUploader::CountFailure(const std::string& reason) {
  const absl::MutexLock lock(&mutex_);
  ++counters_.failed[reason];
}

void DebuginfoUploader::Remember(const DebuginfoId& id, State state,
                                 std::chrono::nanoseconds time) {
  const absl::MutexLock lock(&mutex_);
  Known& known = known_[id.text];
  // What fails again and again is tried less and less often: a large file that takes longer than
  // the server's patience would be sent in vain every time.
  known.failures = state == State::kLater ? std::min(known.failures + 1, kMostDoublings) : 0;
  if (known.failures != 0) time *= 1 << (known.failures - 1);
  known.state = state;
  known.is_waiting = false;
  known.until = After(clock_.Now(), time);
}

DebuginfoUploader::Counters DebuginfoUploader::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters counters = counters_;
  counters.waiting = queue_.size();
  return counters;
}

}  // namespace pyrometer
