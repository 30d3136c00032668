// SPDX-License-Identifier: Apache-2.0
#include "profiler/consumer_thread.h"

#include <pthread.h>

#include <optional>

#include "base/await_until.h"

namespace pyrometer {

ConsumerThread::ConsumerThread(WindowConsumer& consumer, size_t capacity)
    : consumer_(consumer), line_(capacity), thread_([this] { Run(); }) {}

ConsumerThread::~ConsumerThread() {
  Close();
}

void ConsumerThread::Run() {
  ::pthread_setname_np(::pthread_self(), "consumer");
  while (const std::optional<Delivery> delivery = line_.Pop()) {
    consumer_.Consume(*delivery);
    const absl::MutexLock lock(&mutex_);
    ++consumed_;
  }
  const absl::MutexLock lock(&mutex_);
  ended_ = true;
}

bool ConsumerThread::AwaitEnd(const Clock& clock, MonotonicTime until) {
  const absl::MutexLock lock(&mutex_);
  AwaitUntil(mutex_, clock, until,
             [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; });
  return ended_;
}

void ConsumerThread::AwaitEnd() {
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&ended_));
}

ConsumerCounters ConsumerThread::counters() const {
  const absl::MutexLock lock(&mutex_);
  return {.consumed = consumed_, .dropped = line_.dropped(), .waiting = line_.size()};
}

}  // namespace pyrometer
