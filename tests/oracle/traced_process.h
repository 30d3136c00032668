// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "unwind/unwinder.h"

namespace pyrometer::oracle {

// As the unwinder wants them. `after_call` is set for a thread that is in a system call.
UserRegisters ToUserRegisters(const user_regs_struct& registers);

// A program under ptrace(2), run one instruction at a time, with all its addresses random as
// usual. Only its first thread is followed; other threads and children run freely. Killed by the
// destructor.
class TracedProcess {
 public:
  // Stands at its first instruction, in the dynamic linker if it has one. Its input and output are
  // /dev/null. Errors: kPermission where tracing is forbidden; kCommandNotFound and
  // kCommandNotExecutable.
  static Result<TracedProcess> Start(const std::vector<std::string>& command);
  ~TracedProcess();
  TracedProcess(TracedProcess&& other) noexcept;
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;
  TracedProcess& operator=(TracedProcess&&) = delete;

  enum class Stop : uint8_t {
    kStepped,
    kSignalled,  // a signal was delivered; if it has a handler, this is its first instruction
    kExecuted,   // another program
    kEnded,
  };

  // Executes one instruction, or delivers a signal.
  Result<Stop> Step();
  // Runs freely for so long, or until the program ends.
  Result<Stop> RunFor(std::chrono::milliseconds duration);
  // Runs freely up to the program's own first instruction, behind the dynamic linker's start.
  Result<Stop> RunToEntry();

  Pid pid() const { return Pid(static_cast<uint32_t>(pid_)); }
  const user_regs_struct& registers() const { return registers_; }
  Address pc() const { return Address(registers_.rip); }
  Address sp() const { return Address(registers_.rsp); }

 private:
  explicit TracedProcess(pid_t pid) : pid_(pid) {}
  Result<void> Request(int request, uint64_t address, uint64_t data, std::string_view what);
  Result<void> Resume(int request);
  Result<std::optional<Stop>> Judge(int status);
  Result<Stop> WaitForStop(int request);
  Result<void> ReadRegisters();
  Result<Address> EntryPoint() const;

  pid_t pid_ = -1;
  int signal_ = 0;  // to be delivered when it is resumed
  user_regs_struct registers_{};
};

}  // namespace pyrometer::oracle
