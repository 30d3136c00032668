// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "base/message_socket.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A process that forks others when they are needed. It is forked itself while this process has one
// thread, so they begin as small as that was. None of them holds a descriptor of ours, and they end
// when this one ends, as far as they can. It has a twin that takes its place if it is killed: those
// that it forked end then. Thread-compatible.
class Nursery {
 public:
  struct Options {
    const char* name = "pyrometer-nursery";  // of the processes, at most 15 characters
    // Run in the nursery before it forks: what it gives away no child has.
    std::function<void()> prepare{};
    // What a child does. The other end of its socket is Child::socket.
    std::function<void(MessageSocket)> serve;
  };
  struct Process {
    MessageSocket socket;
    pid_t pid = 0;
  };

  // REQUIRES: this process has one thread. Errors: those of fork(2) and socketpair(2).
  static Result<Nursery> Start(const Options& options);
  Nursery(Nursery&& other) noexcept
      : child_(std::exchange(other.child_, 0)),
        active_(std::move(other.active_)),
        spare_(std::move(other.spare_)) {}
  Nursery& operator=(Nursery&&) = delete;
  ~Nursery();

  pid_t pid() const { return active_.pid; }

  // A new one, whose socket takes what is sent within 2 s, or fails. Errors: kExhausted if there is
  // no room for a process; kIo if the nursery was killed together with its twin, or neither
  // answers.
  Result<Process> Fork();
  // At once, as far as it can end. Who has ended already is no error.
  void Kill(pid_t child);

 private:
  explicit Nursery(Process active) : child_(active.pid), active_(std::move(active)) {}

  void TakeSpare();
  void MakeSpare();

  pid_t child_;  // the first, which is this process's own; 0: is no more
  Process active_;
  Process spare_;  // without a socket: there is none
};

}  // namespace pyrometer
