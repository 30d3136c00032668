// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/traced_process.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/procfs.h"
#include "base/system_error.h"

namespace pyrometer::oracle {
namespace {

constexpr int kCannotExecute = 126;
constexpr int kNoCommand = 127;

// In the child: waits until it is traced, then becomes the command.
[[noreturn]] void Execute(const std::vector<std::string>& command, int traced_fd) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  char byte = 0;
  while (::read(traced_fd, &byte, 1) < 0 && errno == EINTR) {
  }
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  ::_exit(errno == ENOENT ? kNoCommand : kCannotExecute);
}

Error NotStarted(const std::string& command, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoCommand) {
    return Fail(ErrorCode::kCommandNotFound, "{}: no such command", command);
  }
  return Fail(ErrorCode::kCommandNotExecutable, "{}: cannot be executed", command);
}

}  // namespace

UserRegisters ToUserRegisters(const user_regs_struct& registers) {
  // System V ABI for x86_64, figure 3.36: DWARF register numbers.
  UserRegisters result{.pc = Address(registers.rip), .values = {}};
  result.values = {registers.rax, registers.rdx, registers.rcx, registers.rbx,
                   registers.rsi, registers.rdi, registers.rbp, registers.rsp,
                   registers.r8,  registers.r9,  registers.r10, registers.r11,
                   registers.r12, registers.r13, registers.r14, registers.r15};
  // The kernel's number of the system call; -1 after faults and interrupts.
  result.after_call = static_cast<int64_t>(registers.orig_rax) >= 0;
  return result;
}

Result<TracedProcess> TracedProcess::Start(const std::vector<std::string>& command) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return SystemError(errno, "pipe2");
  UniqueFd traced_read(fds[0]);
  UniqueFd traced_write(fds[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError(errno, "fork");
  if (pid == 0) {
    traced_write.Reset();
    Execute(command, traced_read.get());
  }
  TracedProcess process(pid);
  RETURN_IF_ERROR(
      process.Request(PTRACE_SEIZE, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC, "PTRACE_SEIZE"));
  traced_write.Reset();
  int status = 0;
  if (::waitpid(pid, &status, __WALL) != pid) return SystemError(errno, "waitpid");
  ASSIGN_OR_RETURN(const std::optional<Stop> stop, process.Judge(status));
  if (stop != Stop::kExecuted) return NotStarted(command.front(), status);
  return process;
}

TracedProcess::TracedProcess(TracedProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), signal_(other.signal_), registers_(other.registers_) {}

TracedProcess::~TracedProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, __WALL) == pid_ && !WIFEXITED(status) && !WIFSIGNALED(status)) {
  }
}

Result<TracedProcess::Stop> TracedProcess::Step() {
  return WaitForStop(PTRACE_SINGLESTEP);
}

Result<TracedProcess::Stop> TracedProcess::RunFor(std::chrono::milliseconds duration) {
  const auto deadline = std::chrono::steady_clock::now() + duration;
  RETURN_IF_ERROR(Resume(PTRACE_CONT));
  while (true) {
    int status = 0;
    const pid_t changed = ::waitpid(pid_, &status, __WALL | WNOHANG);
    if (changed < 0) return SystemError(errno, "waitpid");
    if (changed == pid_) {
      ASSIGN_OR_RETURN(const std::optional<Stop> stop, Judge(status));
      if (stop == Stop::kEnded) return *stop;
      RETURN_IF_ERROR(Resume(PTRACE_CONT));
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  RETURN_IF_ERROR(Request(PTRACE_INTERRUPT, 0, 0, "PTRACE_INTERRUPT"));
  // In the middle of a system call the registers are those of a restart; a step sorts that out.
  int status = 0;
  if (::waitpid(pid_, &status, __WALL) != pid_) return SystemError(errno, "waitpid");
  ASSIGN_OR_RETURN(const std::optional<Stop> stop, Judge(status));
  return stop == Stop::kEnded ? Result<Stop>(Stop::kEnded) : Step();
}

Result<TracedProcess::Stop> TracedProcess::RunToEntry() {
  constexpr uint64_t kBreakpoint = 0xCC;
  ASSIGN_OR_RETURN(const Address entry, EntryPoint());
  errno = 0;
  const long code = ::ptrace(PTRACE_PEEKTEXT, pid_, entry.value(), 0);
  if (errno != 0) return SystemError(errno, "PTRACE_PEEKTEXT");
  const uint64_t original = static_cast<uint64_t>(code);
  RETURN_IF_ERROR(Request(PTRACE_POKETEXT, entry.value(),
                          (original & ~uint64_t{0xFF}) | kBreakpoint, "PTRACE_POKETEXT"));
  ASSIGN_OR_RETURN(const Stop stop, WaitForStop(PTRACE_CONT));
  if (stop == Stop::kEnded) return stop;
  RETURN_IF_ERROR(Request(PTRACE_POKETEXT, entry.value(), original, "PTRACE_POKETEXT"));
  registers_.rip = entry.value();
  if (::ptrace(PTRACE_SETREGS, pid_, 0, &registers_) != 0) {
    return SystemError(errno, "PTRACE_SETREGS");
  }
  return Stop::kStepped;
}

// AT_ENTRY of the auxiliary vector.
Result<Address> TracedProcess::EntryPoint() const {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(Procfs().Of(pid(), "auxv")));
  for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= bytes.size(); at += sizeof(Elf64_auxv_t)) {
    Elf64_auxv_t entry;
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    if (entry.a_type == AT_ENTRY) return Address(entry.a_un.a_val);
  }
  return Fail(ErrorCode::kNotFound, "no entry point in the auxiliary vector");
}

Result<TracedProcess::Stop> TracedProcess::WaitForStop(int request) {
  bool signalled = false;
  while (true) {
    signalled |= signal_ != 0;
    RETURN_IF_ERROR(Resume(request));
    int status = 0;
    if (::waitpid(pid_, &status, __WALL) != pid_) return SystemError(errno, "waitpid");
    ASSIGN_OR_RETURN(const std::optional<Stop> stop, Judge(status));
    if (stop == Stop::kStepped && signalled) return Stop::kSignalled;
    if (stop) return *stop;
  }
}

// What a status of waitpid(2) means; nothing if the process only has to go on.
Result<std::optional<TracedProcess::Stop>> TracedProcess::Judge(int status) {
  if (WIFEXITED(status) || WIFSIGNALED(status)) {
    pid_ = -1;
    return Stop::kEnded;
  }
  const int event = status >> 16;
  const int signal = WSTOPSIG(status);
  if (event == 0 && signal != SIGTRAP) signal_ = signal;
  RETURN_IF_ERROR(ReadRegisters());
  if (event == PTRACE_EVENT_EXEC) return Stop::kExecuted;
  if (event != 0 || signal != SIGTRAP) return std::nullopt;
  return Stop::kStepped;
}

Result<void> TracedProcess::Resume(int request) {
  return Request(request, 0, static_cast<uint64_t>(std::exchange(signal_, 0)), "resuming");
}

Result<void> TracedProcess::Request(int request, uint64_t address, uint64_t data,
                                    std::string_view what) {
  if (::ptrace(static_cast<__ptrace_request>(request), pid_, address, data) == 0) return {};
  return SystemError(errno, what);
}

Result<void> TracedProcess::ReadRegisters() {
  if (::ptrace(PTRACE_GETREGS, pid_, 0, &registers_) == 0) return {};
  return SystemError(errno, "PTRACE_GETREGS");
}

}  // namespace pyrometer::oracle
