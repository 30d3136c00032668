// SPDX-License-Identifier: Apache-2.0
#include "foreign/nursery.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "base/unique_fd.h"

namespace pyrometer {
namespace {

constexpr std::chrono::seconds kAnswers(2);

// To the nursery: fork a child that serves the attached socket, fork another nursery that is told
// by it what to do, or kill a child. It answers the first two with a pid, negative if there is no
// process.
struct Request {
  enum class What : uint32_t { kFork, kTwin, kKill };
  What what = What::kFork;
  int32_t pid = 0;  // to kill
};

UniqueFd OpenProcessById(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// False: it has ended.
bool SignalProcess(const UniqueFd& process, int signal) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

// Nothing of ours may be held by a process that hangs: neither a terminal, nor a pipe whose end
// somebody waits for.
void LeaveTerminal() {
  ::setsid();
  if (::chdir("/") != 0) std::abort();  // cannot be
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, standard);
}

// All but these three.
void CloseAllBut(int kept) {
  constexpr auto kFirst = static_cast<unsigned>(STDERR_FILENO + 1);
  const auto keep = static_cast<unsigned>(kept);
  if (keep > kFirst) ::syscall(SYS_close_range, kFirst, keep - 1, 0);
  ::syscall(SYS_close_range, keep + 1, ~0U, 0);
}

// A change of credentials undoes it.
void EndWithParent() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// After a failure what it says no longer fits what it is asked.
Result<Nursery::Process> Ask(const MessageSocket& nursery, Request::What what) {
  ASSIGN_OR_RETURN(auto ends, MessageSocket::Pair());
  RETURN_IF_ERROR(nursery.Send(Request{.what = what}, ends.second.fd()));
  int32_t pid = 0;
  if (!nursery.WaitUntilReadable(kAnswers)) {
    return Fail(ErrorCode::kIo, "the process that forks others does not answer");
  }
  RETURN_IF_ERROR(nursery.Receive(pid));
  if (pid <= 0) return Fail(ErrorCode::kExhausted, "no further process for foreign files");
  ends.first.LimitSending(kAnswers);
  return Nursery::Process{.socket = std::move(ends.first), .pid = pid};
}

class NurseryProcess {
 public:
  NurseryProcess(MessageSocket control, const Nursery::Options& options)
      : control_(std::move(control)), options_(options) {}

  void Run() {
    Request request;
    while (Result<UniqueFd> attached = control_.Receive(request)) {
      std::erase_if(children_, [](const Child& child) { return !SignalProcess(child.handle, 0); });
      if (request.what == Request::What::kKill) {
        Kill(request.pid);
      } else if (!control_.Send(Fork(request.what, *std::move(attached)))) {
        break;
      }
    }
    for (const Child& child : children_) SignalProcess(child.handle, SIGKILL);
  }

 private:
  struct Child {
    pid_t pid;
    UniqueFd handle;
  };

  int32_t Fork(Request::What what, UniqueFd socket) {
    const bool is_child = what == Request::What::kFork;
    const pid_t pid = ::fork();
    if (pid == 0) {
      // A twin is there for when this one is not.
      if (is_child) EndWithParent();
      CloseAllBut(socket.get());
      MessageSocket to_parent(std::move(socket));
      if (is_child) {
        options_.serve(std::move(to_parent));
      } else {
        NurseryProcess(std::move(to_parent), options_).Run();
      }
      ::_exit(EXIT_SUCCESS);
    }
    if (pid > 0 && is_child) children_.push_back({pid, OpenProcessById(pid)});
    return pid;
  }

  void Kill(pid_t pid) {
    const auto child = std::ranges::find(children_, pid, &Child::pid);
    if (child != children_.end()) SignalProcess(child->handle, SIGKILL);
  }

  const MessageSocket control_;
  const Nursery::Options& options_;
  std::vector<Child> children_;
};

}  // namespace

Result<Nursery> Nursery::Start(const Options& options) {
  ASSIGN_OR_RETURN(auto ends, MessageSocket::Pair());
  ends.first.LimitSending(kAnswers);
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError(errno, "starting a process for foreign files");
  if (pid == 0) {
    ends.first = {};
    ::prctl(PR_SET_NAME, options.name);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    LeaveTerminal();
    CloseAllBut(ends.second.fd());
    if (options.prepare) options.prepare();
    ::signal(SIGCHLD, SIG_IGN);  // the kernel buries them
    NurseryProcess(std::move(ends.second), options).Run();
    ::_exit(EXIT_SUCCESS);
  }
  Nursery nursery(Process{.socket = std::move(ends.first), .pid = pid});
  nursery.MakeSpare();
  return nursery;
}

Nursery::~Nursery() {
  active_ = {};  // which ends them, at once
  spare_ = {};
  if (child_ != 0) ::waitpid(child_, nullptr, 0);
}

// There is none if that fails, and the next one who needs it tries again.
void Nursery::MakeSpare() {
  spare_ = {};
  if (Result<Process> twin = Ask(active_.socket, Request::What::kTwin)) spare_ = *std::move(twin);
}

// The active one has ended, or is as good as that: without its socket it ends when it can.
void Nursery::TakeSpare() {
  const pid_t before = active_.pid;
  active_ = std::exchange(spare_, {});
  if (child_ == before) {
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }
  MakeSpare();
}

Result<Nursery::Process> Nursery::Fork() {
  // A spare says nothing of its own accord: there is something to read when it has ended.
  if (spare_.socket.fd() < 0 || spare_.socket.WaitUntilReadable({})) MakeSpare();
  Result<Process> child = Ask(active_.socket, Request::What::kFork);
  const bool is_there = child || child.error().code() != ErrorCode::kIo;
  if (is_there || spare_.socket.fd() < 0) return child;
  TakeSpare();
  return Ask(active_.socket, Request::What::kFork);
}

void Nursery::Kill(pid_t child) {
  active_.socket.Send(Request{.what = Request::What::kKill, .pid = child})
      .has_value();  // without a nursery there are no children
}

}  // namespace pyrometer
