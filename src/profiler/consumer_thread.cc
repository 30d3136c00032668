// SPDX-License-Identifier: Apache-2.0
#include "profiler/consumer_thread.h"

#include <pthread.h>

#include <optional>

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
    const std::lock_guard lock(mutex_);
    ++consumed_;
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool ConsumerThread::AwaitEnd(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [this] { return ended_; });
}

void ConsumerThread::AwaitEnd() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_; });
}

ConsumerCounters ConsumerThread::counters() const {
  const std::lock_guard lock(mutex_);
  return {.consumed = consumed_, .dropped = line_.dropped(), .waiting = line_.size()};
}

}  // namespace pyrometer
