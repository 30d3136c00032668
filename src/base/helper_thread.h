// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "pyrometer/result.h"

namespace pyrometer {

// A thread that does a part of another one's work: for that one only, a piece at a time. While it
// works it takes no system calls but futexes and those of the work, so it may be kept in a sandbox;
// to end, it takes more.
class HelperThread {
 public:
  // Returns when the thread is ready. Errors: kExhausted if there can be no further thread.
  static Result<std::unique_ptr<HelperThread>> Start();
  // Waits for the work under way.
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  // REQUIRES: the work before was awaited.
  void Begin(std::function<void()> work);
  // Until the work that was begun last is done.
  void Await();

 private:
  HelperThread() = default;
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // guarded by mutex_; null: there is none
  bool is_ready_ = false;       // likewise
  bool is_ending_ = false;      // likewise
  std::thread thread_;
};

}  // namespace pyrometer
