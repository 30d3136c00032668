// SPDX-License-Identifier: Apache-2.0
#include "profiler/consumers.h"

#include <algorithm>
#include <utility>

namespace pyrometer {

ConsumerId Consumers::Attach(WindowConsumer& consumer, const WindowPeriod& period,
                             const Moment& now, uint64_t first) {
  const absl::MutexLock lock(&mutex_);
  const ConsumerId id = ++last_id_;
  schedule_.Add(id, period, now);
  attached_[id] = {.first = first,
                   .thread = std::make_shared<ConsumerThread>(consumer, kWaitingWindows)};
  return id;
}

void Consumers::Detach(ConsumerId id) {
  std::shared_ptr<ConsumerThread> thread;
  {
    const absl::MutexLock lock(&mutex_);
    const auto known = attached_.find(id);
    if (known == attached_.end()) return;
    thread = std::move(known->second.thread);
    attached_.erase(known);
    schedule_.Remove(id);
  }
  thread->Close();
  thread->AwaitEnd();
}

bool Consumers::empty() const {
  const absl::MutexLock lock(&mutex_);
  return attached_.empty();
}

MonotonicTime Consumers::EndOfWindow(MonotonicTime begin) const {
  const absl::MutexLock lock(&mutex_);
  return schedule_.EndOfWindow(begin);
}

std::vector<ConsumerId> Consumers::EndPeriods(const Moment& now) {
  const absl::MutexLock lock(&mutex_);
  return schedule_.EndPeriods(now);
}

std::vector<ConsumerId> Consumers::EndAll() const {
  const absl::MutexLock lock(&mutex_);
  return schedule_.EndAll();
}

void Consumers::Offer(uint64_t number, const std::shared_ptr<const NamedWindow>& window,
                      std::span<const ConsumerId> ended, const Accounting& missed) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [id, attached] : attached_) {
    if (number < attached.first) continue;
    const bool ends = std::ranges::find(ended, id) != ended.end();
    attached.thread->Offer({.window = window, .ends_period = ends, .missed = missed});
  }
}

bool Consumers::Close(std::chrono::steady_clock::time_point until) {
  const std::vector<std::shared_ptr<ConsumerThread>> threads = Threads();
  for (const auto& thread : threads) thread->Close();
  bool all = true;
  for (const auto& thread : threads) all = thread->AwaitEnd(until) && all;
  return all;
}

ConsumerCounters Consumers::counters() const {
  ConsumerCounters sum;
  for (const auto& thread : Threads()) {
    const ConsumerCounters one = thread->counters();
    sum.consumed += one.consumed;
    sum.dropped += one.dropped;
    sum.waiting += one.waiting;
  }
  return sum;
}

std::vector<std::shared_ptr<ConsumerThread>> Consumers::Threads() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<ConsumerThread>> threads;
  for (const auto& [id, attached] : attached_) threads.push_back(attached.thread);
  return threads;
}

}  // namespace pyrometer
