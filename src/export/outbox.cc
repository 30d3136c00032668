// SPDX-License-Identifier: Apache-2.0
#include "export/outbox.h"

#include <optional>
#include <utility>

namespace pyrometer {

Outbox::Outbox(std::unique_ptr<ProfileSink> sink, size_t capacity)
    : sink_(std::move(sink)), queue_(capacity), thread_([this] { SendAll(); }) {}

Outbox::~Outbox() {
  Close(std::chrono::steady_clock::now());
}

void Outbox::Offer(std::shared_ptr<const Profile> profile) {
  // Dropped profiles are counted, and freed, outside of the queue's lock and of ours.
  {
    const std::lock_guard lock(mutex_);
    ++counts_.offered;
  }
  if (const std::optional<Item> dropped = queue_.Push(std::move(profile))) {
    const std::lock_guard lock(mutex_);
    ++counts_.dropped;
  }
}

void Outbox::Close(std::chrono::steady_clock::time_point deadline) {
  if (!thread_.joinable()) return;
  queue_.Close();
  std::unique_lock lock(mutex_);
  if (!all_sent_changed_.wait_until(lock, deadline, [this] { return all_sent_; })) {
    lock.unlock();
    uint64_t left = 0;
    while (queue_.Pop()) ++left;  // does not wait: closed
    sink_->Cancel();
    lock.lock();
    counts_.dropped += left;
  }
  lock.unlock();
  thread_.join();
}

OutboxCounts Outbox::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Outbox::SendAll() {
  while (const std::optional<Item> profile = queue_.Pop()) Count(sink_->Send(**profile));
  const std::lock_guard lock(mutex_);
  all_sent_ = true;
  all_sent_changed_.notify_all();
}

void Outbox::Count(Result<void> result) {
  const std::lock_guard lock(mutex_);
  if (result) {
    ++counts_.sent;
  } else {
    ++counts_.failed[result.error().code()];
    counts_.last_error = result.error().message();
  }
}

}  // namespace pyrometer
