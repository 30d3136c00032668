// SPDX-License-Identifier: Apache-2.0
#include "profiler/table_loader.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "base/stoppable_sleep.h"

namespace pyrometer {
namespace {

// After something was done: a program that maps its libraries one by one should not wake us for
// each, and yet have their tables soon.
constexpr std::chrono::milliseconds kLoadingInterval(50);
// Else at the latest: for evicted pages of samples that the kernel side refused to hand over. Those
// that user space unwinds wake us. Each wakeup of an idle virtual machine costs 70 to 160 us.
constexpr std::chrono::milliseconds kNothingToLoad(4000);
// After that what came meanwhile is looked at: what was mapped last goes first.
constexpr std::chrono::milliseconds kLoadingTime(50);
constexpr std::chrono::milliseconds kNoTime(0);

}  // namespace

void TableLoader::Run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "table-loader");
  const std::stop_callback wake(stop, [this] { target_.Wake(); });
  while (!stop.stop_requested()) {
    const bool was_busy = Load(kLoadingTime, stop);
    const std::chrono::milliseconds until_look = LookIfDue();
    if (!wanted_.empty() && pending_.size() < kMostPending) continue;
    if (was_busy) {
      SleepFor(kLoadingInterval, stop);
    } else {
      target_.Wait(until_look);
    }
  }
}

// Returns how long to wait at most for something to load.
std::chrono::milliseconds TableLoader::LookIfDue() {
  const MonotonicTime now = clock_.Now();
  if (now >= next_look_) {
    next_look_ = After(now, kLookInterval);
    if (look_) look_();
  }
  const bool is_new = Between(last_loaded_, now) < kNewFor;
  return is_new ? std::chrono::milliseconds(kLookInterval) : kNothingToLoad;
}

bool TableLoader::Load(std::chrono::nanoseconds time, const std::stop_token& stop) {
  TakeWanted();
  TakeMade();
  bool any = false;
  const MonotonicTime deadline = After(clock_.Now(), time);
  while (!wanted_.empty() && pending_.size() < kMostPending && clock_.Now() < deadline &&
         !stop.stop_requested()) {
    LoadFirst();
    any = true;
  }
  const absl::MutexLock lock(&mutex_);
  counters_.waiting = wanted_.size() + pending_.size();
  counters_.pending = pending_.size();
  return any;
}

void TableLoader::LoadAll(std::chrono::nanoseconds time) {
  const MonotonicTime deadline = After(clock_.Now(), time);
  while (clock_.Now() < deadline) {
    Load(Between(clock_.Now(), deadline));
    if (wanted_.empty() && pending_.empty()) return;
    if (pending_.empty()) continue;
    const auto left = Between(clock_.Now(), deadline);
    target_.Wait(std::max(std::chrono::ceil<std::chrono::milliseconds>(left), kNoTime));
  }
}

void TableLoader::LoadFirst() {
  const ObjectId object = wanted_.front();
  wanted_.pop_front();
  const std::shared_ptr<const UnwindTable> table = tables_.Of(object);
  if (table == nullptr) {
    pending_.push_back(object);
    return;
  }
  // One that was not read all the same: it lets the kernel side follow frame pointers meanwhile.
  const bool is_needed = target_.Load(object, *table);
  last_loaded_ = clock_.Now();
  if (is_needed && table->unread) {
    retries_.push_back({.when = After(clock_.Now(), kRetry), .object = object});
  }
  const absl::MutexLock lock(&mutex_);
  ++counters_.loaded;
}

// What was mapped last is about to run; before it comes what samples had to be unwound with.
void TableLoader::TakeWanted() {
  const std::vector<ObjectId> more = target_.TakeWanted();
  wanted_.insert(wanted_.begin(), more.begin(), more.end());
  for (; !retries_.empty() && retries_.front().when <= clock_.Now(); retries_.pop_front()) {
    wanted_.push_back(retries_.front().object);
    const absl::MutexLock lock(&mutex_);
    ++counters_.retried;
  }
  // Not std::ranges::stable_partition: clang 14, which checks this code, cannot compile subranges.
  std::stable_partition(wanted_.begin(), wanted_.end(),
                        [this](ObjectId object) { return tables_.Has(object); });
}

// What was asked for and is there by now, or will not come.
void TableLoader::TakeMade() {
  const auto is_made = [this](ObjectId object) { return !tables_.IsPending(object); };
  std::ranges::copy_if(pending_, std::front_inserter(wanted_), is_made);
  std::erase_if(pending_, is_made);
}

TableLoader::Counters TableLoader::counters() const {
  const absl::MutexLock lock(&mutex_);
  return counters_;
}

}  // namespace pyrometer
