// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The command of `record -- COMMAND`: a child process that already exists, so that the filter can
// have its pid, but executes the command only after Release().
//
// It stays in our process group, so Ctrl-C on the terminal reaches it as well. It gets no file
// descriptor of ours (all have O_CLOEXEC), an empty signal mask, and default dispositions for the
// signals that we handle and for SIGPIPE. Signals ignored when we were started stay ignored, as
// nohup(1) needs.
//
// Not thread-safe. The destructor kills the child if Release() has not succeeded; after that it
// sends SIGTERM to a child that has not been waited for, as `perf record` does.
class ChildCommand {
 public:
  // Forks. A command without '/' is looked up in PATH, in the child. REQUIRES: !command.empty().
  static Result<ChildCommand> Start(std::span<const std::string> command);

  ChildCommand(ChildCommand&& other) noexcept;
  ChildCommand& operator=(ChildCommand&&) = delete;
  ~ChildCommand();

  // As returned by fork(2), in our pid namespace.
  Pid pid() const { return Pid(static_cast<uint32_t>(pid_)); }

  // Lets the child execute its command, and waits until it does.
  // Errors: kCommandNotFound, kCommandNotExecutable; the child is gone then.
  Result<void> Release();

  // Becomes readable (POLLIN) when the command has ended, whatever its descendants do.
  int ended_fd() const { return pidfd_.get(); }

  // Waits for the end of the command: its exit status, or 128 + the signal that killed it.
  // REQUIRES: released.
  Result<int> Wait();

  // Asks a running command to end (SIGTERM).
  void Terminate();

 private:
  ChildCommand(pid_t pid, UniqueFd pidfd, UniqueFd gate);
  void Kill();

  pid_t pid_;
  std::string name_;
  UniqueFd pidfd_;
  UniqueFd gate_;  // our end of a socket pair: "go" out, the errno of a failed exec in
  bool released_ = false;
  std::optional<int> exit_status_;  // set once waited for
};

}  // namespace pyrometer
