// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "pyrometer/result.h"
#include "tests/oracle/comparison.h"
#include "tests/oracle/findings.h"
#include "tests/oracle/instruction.h"
#include "tests/oracle/live_view.h"
#include "tests/oracle/shadow_stack.h"
#include "tests/oracle/stack_regions.h"
#include "tests/oracle/table_cache.h"
#include "tests/oracle/traced_process.h"

namespace pyrometer::oracle {

// Steps a process through its instructions, keeps its shadow stack, and compares what the unwinder
// makes of it.
class StepOracle {
 public:
  // Compares at every `every`-th instruction. `process` and `tables` outlive it.
  StepOracle(TracedProcess& process, TableCache& tables, uint64_t every);

  // Begins where the process stands, at the first instruction of a program: nothing is on the
  // stack.
  void BeginAtRoot();

  // Begins somewhere in a program: trusts what the unwinder finds, at the next instruction where it
  // is complete and all of it are return addresses behind calls. A frame that should not be there,
  // or is missing, comes to light when the functions return. Errors: kNotFound if there is no such
  // instruction soon.
  Result<TracedProcess::Stop> BeginAnywhere();

  // Executes so many instructions, fewer if the program ends.
  Result<TracedProcess::Stop> Run(uint64_t instructions);

  const Findings& findings() const { return findings_; }

 private:
  // A stack that is not right by now: cut or wrong, unless a jump shows otherwise.
  struct Pending {
    uint64_t instruction = 0;
    Verdict verdict = Verdict::kWrong;
    UnwoundStack unwound;
    std::vector<UnwoundFrame> truth;
    user_regs_struct registers{};
    Address differs_at;  // stack pointer of the first frame that is not right
  };

  Result<TracedProcess::Stop> StepOnce();
  void FollowSignal(Instruction instruction, const user_regs_struct& before);
  void FollowInstruction(Instruction instruction, const user_regs_struct& before);
  ShadowStack::Flow FollowCalls(Instruction instruction, const user_regs_struct& before);
  void FollowReturn(const user_regs_struct& before);
  bool EnteredHandler(const user_regs_struct& before, ShadowStack::Interrupted& interrupted);
  Instruction InstructionAtPc() const;
  void Check();
  void Postpone(Verdict verdict, UnwoundStack unwound, std::vector<UnwoundFrame> truth);
  void SettlePending(ShadowStack::Flow flow, ShadowStack::Change change, Address top_slot);
  void ResolveByJump();
  void CountAll();
  void Count(const Pending& pending);
  void CountRight(Verdict verdict, const UnwoundStack& unwound);
  bool CountIfAhead(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth);
  void AddExample(const Pending& pending);
  bool IsTrustworthy(const UnwoundStack& unwound);
  std::string DescribeStack(const std::vector<UnwoundFrame>& frames);

  TracedProcess& process_;
  uint64_t every_;
  LiveView view_;
  StackRegions regions_;
  ShadowStack shadow_;
  ShadowStack::ReadWord read_word_;
  std::deque<Pending> pending_;
  uint64_t leaving_until_ = 0;  // instruction: calls were left without a return just before
  Address left_from_;           // slot of the return address of the function that did so
  bool after_call_ = false;     // a system call was just made
  bool on_trust_ = false;       // the shadow stack began with what the unwinder found
  std::set<Address> trusted_;   // slots
  Findings findings_;
};

}  // namespace pyrometer::oracle
