// SPDX-License-Identifier: Apache-2.0
#include "base/nursery.h"

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

#include "base/clock.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr std::chrono::seconds kAnswers(2);

// Fork a child that serves the attached socket, or kill one. A kFork is answered by a Forked.
struct Request {
  enum class What : uint32_t { kFork, kKill };
  What what = What::kFork;
  int32_t pid = 0;      // to kill
  uint64_t number = 0;  // of a kFork
};
struct Forked {
  uint64_t number = 0;
  int64_t pid = 0;  // negative: there is none
};

UniqueFd OpenProcessById(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// False: it has ended.
bool SignalProcess(const UniqueFd& process, int signal) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

// Nothing of ours may be held by a process that hangs: neither a pipe whose end somebody waits for,
// nor a terminal.
void LeaveEverythingBehind(int kept) {
  ::setsid();
  if (::chdir("/") != 0) std::abort();  // cannot be
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, standard);
  constexpr auto kFirst = static_cast<unsigned>(STDERR_FILENO + 1);
  const auto keep = static_cast<unsigned>(kept);
  if (keep > kFirst) ::syscall(SYS_close_range, kFirst, keep - 1, 0);
  ::syscall(SYS_close_range, keep + 1, ~0U, 0);
}

// The nursery's side.
class Forker {
 public:
  Forker(MessageSocket control, const Nursery::Work& work)
      : control_(std::move(control)), work_(work) {}

  void Run() {
    Request request;
    while (Result<UniqueFd> attached = control_.Receive(request)) {
      std::erase_if(children_, [](const Child& child) { return !SignalProcess(child.handle, 0); });
      if (request.what == Request::What::kKill) {
        Kill(request.pid);
      } else if (!control_.Send(
                     Forked{.number = request.number, .pid = Fork(*std::move(attached))})) {
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

  int32_t Fork(UniqueFd socket) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      LeaveEverythingBehind(socket.get());
      work_(MessageSocket(std::move(socket)));
      ::_exit(EXIT_SUCCESS);
    }
    if (pid > 0) children_.push_back({pid, OpenProcessById(pid)});
    return pid;
  }

  void Kill(pid_t pid) {
    const auto child = std::ranges::find(children_, pid, &Child::pid);
    if (child != children_.end()) SignalProcess(child->handle, SIGKILL);
  }

  const MessageSocket control_;
  const Nursery::Work& work_;
  std::vector<Child> children_;
};

[[noreturn]] void RunForker(const char* name, MessageSocket control, const Nursery::Work& work) {
  ::prctl(PR_SET_NAME, name);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  LeaveEverythingBehind(control.fd());
  ::signal(SIGCHLD, SIG_IGN);  // the kernel buries them
  Forker(std::move(control), work).Run();
  ::_exit(EXIT_SUCCESS);
}

}  // namespace

Result<std::unique_ptr<Nursery>> Nursery::Start(const char* name, const Work& work) {
  ASSIGN_OR_RETURN(auto ends, MessageSocket::Pair());
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError(errno, "starting another process");
  if (pid == 0) {
    ends.first = {};
    RunForker(name, std::move(ends.second), work);
  }
  return std::unique_ptr<Nursery>(new Nursery(pid, std::move(ends.first)));
}

Nursery::~Nursery() {
  control_ = {};  // which ends it, at once
  ::waitpid(pid_, nullptr, 0);
}

Result<Nursery::Child> Nursery::Fork() {
  ASSIGN_OR_RETURN(auto ends, MessageSocket::Pair());
  const std::scoped_lock lock(mutex_);
  const Request request{.number = ++last_number_};
  RETURN_IF_ERROR(control_.Send(request, ends.second.fd()));
  const MonotonicTime until = After(MonotonicNow(), kAnswers);
  while (true) {
    const auto left = std::max(Between(MonotonicNow(), until), std::chrono::nanoseconds(0));
    if (!control_.WaitUntilReadable(left)) {
      return Fail(ErrorCode::kExhausted, "the process that starts others does not answer");
    }
    Forked forked;
    RETURN_IF_ERROR(control_.Receive(forked));
    if (forked.number != request.number) {
      // One that nobody waits for any more.
      if (forked.pid > 0) KillLocked(static_cast<pid_t>(forked.pid));
      continue;
    }
    if (forked.pid <= 0) return Fail(ErrorCode::kExhausted, "no further process can be started");
    return Child{.socket = std::move(ends.first), .pid = static_cast<pid_t>(forked.pid)};
  }
}

void Nursery::Kill(pid_t pid) {
  const std::scoped_lock lock(mutex_);
  KillLocked(pid);
}

void Nursery::KillLocked(pid_t pid) {
  // Without a nursery there are no children.
  control_.Send(Request{.what = Request::What::kKill, .pid = pid}).has_value();
}

}  // namespace pyrometer
