// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/dropping_queue.h"
#include "pyrometer/profile.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// What became of the profiles offered to an outbox:
// offered == sent + failures + dropped + those waiting or being sent.
struct OutboxCounts {
  uint64_t offered = 0;
  uint64_t sent = 0;
  std::map<ErrorCode, uint64_t> failed;
  uint64_t dropped = 0;    // too old when the queue was full, or left over at the end
  std::string last_error;  // the message of the last failure; "" if there was none
};

// A queue and a thread in front of one sink, so that a slow, stuck or failing sink delays neither
// the producer of the profiles nor other sinks. A full queue drops its oldest profile; a profile
// that the sink fails to send is given up. Thread-safe, except for Close.
class Outbox {
 public:
  // REQUIRES: capacity, in profiles, > 0.
  Outbox(std::unique_ptr<ProfileSink> sink, size_t capacity);
  // Drops what is in the queue.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Never waits. The profile is shared, since several outboxes get the same one.
  void Offer(std::shared_ptr<const Profile> profile);

  // Sends what is in the queue until `deadline`, then drops the rest, cancels a Send under way and
  // waits for it to return. Profiles offered from now on are dropped.
  void Close(std::chrono::steady_clock::time_point deadline);

  OutboxCounts counts() const;

 private:
  using Item = std::shared_ptr<const Profile>;

  void SendAll();
  void Count(Result<void> result);

  const std::unique_ptr<ProfileSink> sink_;
  DroppingQueue<Item> queue_;
  mutable std::mutex mutex_;  // of what follows, but for the thread
  std::condition_variable all_sent_changed_;
  bool all_sent_ = false;  // by the thread, which is at its end
  OutboxCounts counts_;
  std::jthread thread_;
};

}  // namespace pyrometer
