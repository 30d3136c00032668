// SPDX-License-Identifier: Apache-2.0
#include "server/workers.h"

#include <system_error>
#include <utility>

namespace pyrometer {
namespace {

constexpr size_t kMostWaiting = 64;

}  // namespace

Workers::~Workers() {
  Stop();
}

Workers::Taken Workers::Offer(UniqueFd& socket) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || waiting_.size() >= kMostWaiting) return Taken::kRefused;
  if (idle_ <= waiting_.size() && threads_.size() < most_) {
    try {
      threads_.emplace_back(&Workers::Run, this);
      ++idle_;
    } catch (const std::system_error&) {  // no more threads for this user
      if (threads_.empty()) return Taken::kRefused;
    }
  }
  waiting_.push_back(std::move(socket));
  work_.notify_one();
  return waiting_.size() <= idle_ ? Taken::kAtOnce : Taken::kWaits;
}

bool Workers::Crowded() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() > idle_;
}

void Workers::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_.clear();
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    UniqueFd socket = std::move(waiting_.front());
    waiting_.pop_front();
    --idle_;
    lock.unlock();
    serve_(std::move(socket));
    lock.lock();
    ++idle_;
  }
}

}  // namespace pyrometer
