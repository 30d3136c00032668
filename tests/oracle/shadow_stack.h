// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "pyrometer/ids.h"
#include "unwind/unwinder.h"

namespace pyrometer::oracle {

// The memory that a stack lies in, by its upper end: the lower one moves when a stack grows.
using Region = StrongValue<struct RegionTag, uint64_t>;

// The calls that a thread is in, as its instructions have made them: what an unwinder has to find.
// Knows several stacks (signal stacks, contexts), each by its region; nothing of tables or code.
// x86_64: a return address lies in a slot of 8 bytes just below what the stack pointer will be
// when the function has returned.
class ShadowStack {
 public:
  struct Call {
    Address slot;
    Address return_address;
    bool operator==(const Call&) const = default;
  };
  struct Interrupted {
    Region region;  // of `sp`
    Address pc;
    Address sp;
  };
  // The 8 bytes at an address; 0 if they are not to be had.
  using ReadWord = std::function<uint64_t(Address)>;

  // How control went on after an instruction.
  enum class Flow : uint8_t { kSequential, kReturn, kJump };
  // How the stack came to be as it is after an instruction.
  enum class Change : uint8_t {
    kNone,       // as the calls and returns said, or not at all
    kIrregular,  // calls were left without a return, or another stack was taken
  };

  // Begins anew on a stack that holds no calls.
  void Reset(Region region);
  // Begins anew on a stack that holds `calls`, outermost first.
  void Reset(Region region, const std::vector<Call>& calls);

  // A call was executed on the current stack.
  void Push(Call call);

  // The thread was interrupted, and is at the first instruction of a signal handler: `frame` is
  // where the kernel has put the handler's return address, in `region`.
  void EnterHandler(Region region, Call frame, const Interrupted& interrupted);
  // The innermost signal frame was left by rt_sigreturn.
  void LeaveHandler();

  // To be called after each instruction. Forgets what lies below the stack pointer; not yet the one
  // return address that was just popped by a sequential instruction, since vfork(3) puts it back. A
  // stack seen for the first time begins with the return address at `sp`, if it is one.
  Change Settle(Region region, Address sp, Flow flow, const ReadWord& read);

  // Where the innermost return address of the current stack lies; 0 if there is none.
  Address TopSlot() const;

  // The frames of the thread, as UnwoundStack has them.
  std::vector<UnwoundFrame> Frames(Address pc, Address sp) const;

 private:
  struct Entry {
    Address slot;  // of a signal frame: where it begins
    Address return_address;
    bool signal = false;
    Interrupted interrupted;  // of a signal frame
  };
  using Strand = std::vector<Entry>;  // outermost first

  Strand& current() { return strands_[region_]; }
  Change DropBelow(Address sp, Flow flow);
  Change DropUnlessRestored(Address sp, const ReadWord& read);
  Change SwitchTo(Region region, Address sp, const ReadWord& read);

  Region region_;
  std::map<Region, Strand> strands_;
  bool suspended_ = false;  // the top return address was popped, and may be put back
};

}  // namespace pyrometer::oracle
