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

void Consumers::SetPeriod(ConsumerId id, const WindowPeriod& period, const Moment& now) {
  const absl::MutexLock lock(&mutex_);
  if (attached_.contains(id)) schedule_.Add(id, period, now);
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
  const ConsumerCounters last = thread->counters();
  const absl::MutexLock lock(&mutex_);
  of_detached_.consumed += last.consumed;
  of_detached_.dropped += last.dropped;
}

bool Consumers::empty() const {
  const absl::MutexLock lock(&mutex_);
  return attached_.empty();
}

void Consumers::Restart(const Moment& now) {
  const absl::MutexLock lock(&mutex_);
  schedule_.Restart(now);
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
                      std::span<const ConsumerId> ended, std::span<const MissedWindow> missed) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [id, attached] : attached_) {
    if (number < attached.first) continue;
    const bool ends = std::ranges::find(ended, id) != ended.end();
    Accounting missed_by_it;
    for (const MissedWindow& one : missed) {
      if (one.number >= attached.first) missed_by_it += one.accounting;
    }
    attached.thread->Offer({.window = window, .ends_period = ends, .missed = missed_by_it});
  }
}

bool Consumers::Close(MonotonicTime until) {
  const std::vector<std::shared_ptr<ConsumerThread>> threads = Threads();
  for (const auto& thread : threads) thread->Close();
  bool all = true;
  for (const auto& thread : threads) all = thread->AwaitEnd(clock_, until) && all;
  return all;
}

void Consumers::Close() {
  for (const auto& thread : Threads()) {
    thread->Close();
    thread->AwaitEnd();
  }
}

ConsumerCounters Consumers::counters() const {
  ConsumerCounters sum;
  {
    const absl::MutexLock lock(&mutex_);
    sum = of_detached_;
  }
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
