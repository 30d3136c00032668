// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <system_error>
#include <utility>

namespace pyrometer {

Result<std::unique_ptr<HelperThread>> HelperThread::Start() {
  std::unique_ptr<HelperThread> helper(new HelperThread());
  try {
    helper->thread_ = std::thread([raw = helper.get()] { raw->Run(); });
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kExhausted, "a thread: {}", error.what());
  }
  std::unique_lock lock(helper->mutex_);
  helper->changed_.wait(lock, [raw = helper.get()] { return raw->is_ready_; });
  lock.unlock();
  return helper;
}

HelperThread::~HelperThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HelperThread::Begin(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void HelperThread::Await() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_ == nullptr; });
}

void HelperThread::Run() {
  std::unique_lock lock(mutex_);
  is_ready_ = true;
  changed_.notify_all();
  while (true) {
    changed_.wait(lock, [this] { return work_ != nullptr || is_ending_; });
    if (work_ == nullptr) return;
    lock.unlock();
    work_();
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace pyrometer
