// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/message_socket.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A process with one thread that forks others whenever they are needed: a process that has threads
// cannot fork one that does more than exec. Its children hold none of our descriptors but their end
// of a socket, and end when the nursery does, as far as they can. Thread-safe.
class Nursery {
 public:
  // What a child does, in a process of its own; it ends when this returns.
  using Work = std::function<void(MessageSocket)>;
  struct Child {
    MessageSocket socket;  // to it
    pid_t pid = 0;
  };

  // `name`: of its processes, as in /proc/PID/comm, at most 15 characters. REQUIRES: this process
  // has one thread. Errors: those of fork(2) and socketpair(2).
  static Result<std::unique_ptr<Nursery>> Start(const char* name, const Work& work);
  // Ends all its processes.
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  // Errors: kExhausted if there can be no further process.
  Result<Child> Fork();
  // Of one that Fork() returned; nothing if it has ended.
  void Kill(pid_t pid);

 private:
  Nursery(pid_t pid, MessageSocket control) : pid_(pid), control_(std::move(control)) {}

  void KillLocked(pid_t pid);

  const pid_t pid_;
  std::mutex mutex_;
  MessageSocket control_;     // guarded by mutex_
  uint64_t last_number_ = 0;  // of a request; likewise
};

}  // namespace pyrometer
