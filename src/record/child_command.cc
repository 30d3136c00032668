// SPDX-License-Identifier: Apache-2.0
#include "record/child_command.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr int kSignalStatus = 128;  // as a shell's $?
constexpr int kCannotExecute = 126;

// Only async-signal-safe calls below: the parent may have had threads.

void ResetSignals() {
  struct sigaction action {};
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_DFL) continue;
    if (action.sa_handler == SIG_IGN && signal != SIGPIPE) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The child until it has become the command, or has reported why it cannot.
[[noreturn]] void BecomeCommand(int gate, char* const* argv) {
  ResetSignals();
  // Ticks may hit it before exec gives it this name; they must not show under our name.
  const char* const slash = std::strrchr(argv[0], '/');
  ::prctl(PR_SET_NAME, slash == nullptr ? argv[0] : slash + 1);
  char go = 0;
  ssize_t n = 0;
  do {
    n = ::recv(gate, &go, sizeof(go), 0);
  } while (n < 0 && errno == EINTR);
  if (n == sizeof(go)) {
    ::execvp(argv[0], argv);
    const int errnum = errno;
    ::send(gate, &errnum, sizeof(errnum), MSG_NOSIGNAL);
  }
  ::_exit(kCannotExecute);
}

// execvp reports a directory of PATH that may not be searched rather than the missing command; a
// shell skips such directories.
bool IsInPath(const std::string& name) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return true;  // execvp has a default of its own
  for (const std::string_view directory : Split(path, ':')) {
    const std::string file = directory.empty() ? name : std::string(directory) + "/" + name;
    if (::access(file.c_str(), F_OK) == 0) return true;
  }
  return false;
}

Error ExecError(int errnum, const std::string& command) {
  const bool is_missing = errnum == ENOENT || errnum == ENOTDIR;
  if (command.find('/') == std::string::npos && (is_missing || !IsInPath(command))) {
    return Fail(ErrorCode::kCommandNotFound, "{}: command not found in PATH", command);
  }
  return Error(is_missing ? ErrorCode::kCommandNotFound : ErrorCode::kCommandNotExecutable,
               SystemError(errnum, command).message());
}

}  // namespace

Result<ChildCommand> ChildCommand::Start(std::span<const std::string> command) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return SystemError(errno, "socketpair");
  }
  UniqueFd ours(sockets[0]);
  const UniqueFd childs(sockets[1]);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  const pid_t pid = ::fork();
  if (pid < 0) return SystemError(errno, "fork");
  if (pid == 0) {
    ::close(ours.get());  // else the child would not see our death
    BecomeCommand(childs.get(), argv.data());
  }
  // The child is ours and not waited for: its pid cannot have been reused.
  ChildCommand child(pid, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
                     std::move(ours));
  child.name_ = command.front();
  if (!child.pidfd_) return SystemError(errno, "pidfd_open");
  return child;
}

ChildCommand::ChildCommand(pid_t pid, UniqueFd pidfd, UniqueFd gate)
    : pid_(pid), pidfd_(std::move(pidfd)), gate_(std::move(gate)) {}

ChildCommand::ChildCommand(ChildCommand&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      name_(std::move(other.name_)),
      pidfd_(std::move(other.pidfd_)),
      gate_(std::move(other.gate_)),
      released_(other.released_),
      exit_status_(other.exit_status_) {}

ChildCommand::~ChildCommand() {
  if (pid_ == 0 || exit_status_) return;
  if (released_) {
    Terminate();
  } else {
    Kill();
  }
}

Result<void> ChildCommand::Release() {
  const char go = 1;
  // Fails only if the child is already dead (Ctrl-C); Wait() reports that.
  (void)::send(gate_.get(), &go, sizeof(go), MSG_NOSIGNAL);
  int errnum = 0;
  ssize_t n = 0;
  do {
    n = ::recv(gate_.get(), &errnum, sizeof(errnum), MSG_WAITALL);
  } while (n < 0 && errno == EINTR);
  gate_.Reset();
  if (n == sizeof(errnum)) {
    Kill();
    return ExecError(errnum, name_);
  }
  // The end of the stream: exec closed the child's socket.
  released_ = true;
  return {};
}

Result<int> ChildCommand::Wait() {
  while (!exit_status_) {
    int status = 0;
    if (::waitpid(pid_, &status, 0) < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, "waitpid");
    }
    exit_status_ = WIFSIGNALED(status) ? kSignalStatus + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return *exit_status_;
}

void ChildCommand::Terminate() {
  if (!exit_status_) ::kill(pid_, SIGTERM);
}

void ChildCommand::Kill() {
  ::kill(pid_, SIGKILL);
  (void)Wait();
}

}  // namespace pyrometer
