// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace pyrometer {

// The threads that serve connections, one each. They are started when there is work for them, so
// that an agent that only Prometheus asks has one. Thread-safe.
class Workers {
 public:
  using Serve = std::function<void(UniqueFd)>;

  Workers(size_t threads, Serve serve) : most_(threads), serve_(std::move(serve)) {}
  ~Workers();

  enum class Taken { kAtOnce, kWaits, kRefused };
  // Has `socket` served as soon as a thread is free. kRefused: too many wait; `socket` stays the
  // caller's.
  Taken Offer(UniqueFd& socket);

  // Whether connections wait for a thread.
  bool Crowded() const;

  // Drops those that wait, lets what is being served end, and takes no more.
  void Stop();

 private:
  void Run();

  const size_t most_;
  const Serve serve_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<UniqueFd> waiting_;
  size_t idle_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pyrometer
