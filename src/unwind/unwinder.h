// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"
#include "pyrometer/sample.h"
#include "pyrometer/unwind_table.h"
#include "unwind/registers.h"

namespace pyrometer {

// By DWARF number.
inline constexpr size_t kStackPointer = kHostMachine.stack_pointer;

// The registers of a thread in user mode.
struct UserRegisters {
  Address pc;
  // By DWARF number: on x86_64 6 is RBP and 7 RSP, on arm64 29 is the frame pointer, 30 the link
  // register and 31 the stack pointer.
  std::array<uint64_t, PYRO_REGISTERS> values{};
  // pc follows the instruction that is being executed: the thread is in a system call.
  bool after_call = false;
};

// What an unwinder needs of a process.
class UnwindView {
 public:
  enum class Place : uint8_t {
    kNowhere,    // no executable mapping: no return address leads there
    kUnknown,    // executable, but whether there is call frame information cannot be told
    kAnonymous,  // executable and no file: JIT code
    kUnread,     // a file of which that cannot be told for some time: see PYRO_PLACE_UNREAD
    kNoTable,    // a file without call frame information
    kTable,
  };
  struct Found {
    Place place = Place::kNowhere;
    const UnwindTable* table = nullptr;      // of kTable; so the rest
    const pyro_unwind_rule* rule = nullptr;  // never null
  };

  virtual ~UnwindView() = default;
  virtual Found Find(Address pc) = 0;
  // Reads the stack. False if the bytes are not available.
  virtual bool Read(Address address, std::span<std::byte> out) = 0;
  // Likewise for executable memory. Only used around hand-written code.
  virtual bool ReadCode(Address address, std::span<std::byte> out) = 0;
  // True once executable memory was asked for that is there, and did not come in time.
  virtual bool IsCodeLate() const { return false; }

 protected:
  // What an address is of whose object there is a table: kUnknown if it cannot be read now.
  static Found FindIn(const UnwindTable& table, ElfAddress address) {
    const pyro_unwind_rule* const rule = table.RuleAt(address);
    if (rule == nullptr) return {.place = Place::kUnknown, .table = nullptr, .rule = nullptr};
    return {.place = Place::kTable, .table = &table, .rule = rule};
  }
};

struct UnwoundFrame {
  // The address to look up: the interrupted pc, or a return address minus one unless a signal
  // interrupted the function there.
  Address pc;
  // The stack pointer in this frame: that of the leaf, or what it will be when the callee has
  // returned. On x86_64 a return address lies just below it.
  Address sp;
  bool operator==(const UnwoundFrame&) const = default;
};

struct UnwoundStack {
  std::vector<UnwoundFrame> frames;  // leaf first, at least one
  StackEnd end = StackEnd::kComplete;
  bool over_budget = false;  // it would have cost more than UnwindBudget allows: kTruncated
};

// Limits the cost of unwinding one stack. Registers, stack and tables may be crafted to be
// expensive: a search for the callers of hand-written code tries many ways.
struct UnwindBudget {
  // A step is a call of the view or an expression. Every frame takes at least one, and so does
  // every word that may be a return address. A stack of 512 frames takes about 1,500.
  uint32_t most_steps = 20'000;
  // By `now`, so that a file that is slow to read counts. Looked at every 64 steps. Without `now`
  // it may take any time.
  std::chrono::nanoseconds most_time = std::chrono::milliseconds(100);
  std::function<MonotonicTime()> now = nullptr;
};

// Unwinds one stack with the code that runs in the kernel (bpf/unwinder.bpf.h), and evaluates what
// that leaves to user space. x86_64 stacks on x86_64 hosts, arm64 stacks on arm64 hosts.
// A stack that is over its budget has the frames that were found until then.
UnwoundStack Unwind(const UserRegisters& registers, UnwindView& view,
                    const UnwindBudget& budget = {});

}  // namespace pyrometer
