// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/step_oracle.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

namespace pyrometer::oracle {
namespace {

constexpr size_t kExamples = 5;
constexpr size_t kFramesShown = 40;
// From where call frame information leads to the target of a jump, or where what the callers have
// saved is overwritten, up to the jump.
constexpr uint64_t kLongestJump = 2000;
// From the change of the stack pointer up to the jump.
constexpr uint64_t kLastSteps = 64;
// To reach an instruction with a complete stack.
constexpr uint64_t kPatience = 100'000;

bool ChangesMappings(uint64_t system_call) {
  switch (system_call) {
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_pkey_mprotect:
    case SYS_remap_file_pages:
    case SYS_shmat:
    case SYS_shmdt:
      return true;
    default:
      return false;
  }
}

std::string DescribeRegisters(const user_regs_struct& r) {
  return fmt::format(
      "  rip {:#x} rsp {:#x} rbp {:#x} rbx {:#x}\n"
      "  rax {:#x} rcx {:#x} rdx {:#x} rsi {:#x} rdi {:#x}\n"
      "  r8 {:#x} r9 {:#x} r10 {:#x} r11 {:#x} r12 {:#x} r13 {:#x} r14 {:#x} r15 {:#x}\n",
      r.rip, r.rsp, r.rbp, r.rbx, r.rax, r.rcx, r.rdx, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
      r.r12, r.r13, r.r14, r.r15);
}

}  // namespace

StepOracle::StepOracle(TracedProcess& process, TableCache& tables, uint64_t every)
    : process_(process),
      every_(every),
      view_(process.pid(), tables),
      regions_(process.pid()),
      read_word_([this](Address address) { return view_.ReadWord(address); }) {}

void StepOracle::BeginAtRoot() {
  CountAll();
  view_.ForgetMemory();
  view_.ForgetMappings();
  regions_.Forget();
  shadow_.Reset(regions_.Of(process_.sp()));
  on_trust_ = false;
  trusted_.clear();
}

Result<TracedProcess::Stop> StepOracle::BeginAnywhere() {
  BeginAtRoot();
  for (uint64_t i = 0; i < kPatience; ++i) {
    view_.ForgetMemory();
    const UnwoundStack unwound = Unwind(ToUserRegisters(process_.registers()), view_);
    if (IsTrustworthy(unwound)) {
      std::vector<ShadowStack::Call> calls;
      for (auto frame = unwound.frames.rbegin(); frame + 1 != unwound.frames.rend(); ++frame) {
        calls.push_back({Address(frame->sp.value() - 8), Address(frame->pc.value() + 1)});
        trusted_.insert(calls.back().slot);
      }
      findings_.trusted += calls.size();
      shadow_.Reset(regions_.Of(process_.sp()), calls);
      on_trust_ = true;
      return TracedProcess::Stop::kStepped;
    }
    ASSIGN_OR_RETURN(const TracedProcess::Stop stop, process_.Step());
    if (stop == TracedProcess::Stop::kEnded) return stop;
    view_.ForgetMappings();
  }
  return Fail(ErrorCode::kNotFound, "no complete stack in {} instructions, at {}", kPatience,
              view_.Describe(process_.pc()));
}

// Complete, and made of return addresses only: a signal frame is not, its interrupted pc stands
// elsewhere.
bool StepOracle::IsTrustworthy(const UnwoundStack& unwound) {
  if (unwound.end != StackEnd::kComplete || unwound.frames.size() < 2) return false;
  for (const UnwoundFrame& frame : std::span(unwound.frames).subspan(1)) {
    const Address return_address(frame.pc.value() + 1);
    if (view_.ReadWord(Address(frame.sp.value() - 8)) != return_address.value()) return false;
    std::array<std::byte, 7> code{};
    if (!view_.Read(Address(return_address.value() - code.size()), code)) return false;
    if (!EndsInCall(code)) return false;
  }
  return true;
}

Result<TracedProcess::Stop> StepOracle::Run(uint64_t instructions) {
  for (uint64_t i = 0; i < instructions; ++i) {
    view_.ForgetMemory();
    if (findings_.instructions % every_ == 0) Check();
    ASSIGN_OR_RETURN(const TracedProcess::Stop stop, StepOnce());
    if (stop == TracedProcess::Stop::kEnded) {
      CountAll();
      return stop;
    }
  }
  CountAll();
  return TracedProcess::Stop::kStepped;
}

Result<TracedProcess::Stop> StepOracle::StepOnce() {
  const user_regs_struct before = process_.registers();
  const Instruction instruction = InstructionAtPc();
  ASSIGN_OR_RETURN(const TracedProcess::Stop stop, process_.Step());
  view_.ForgetMemory();
  ++findings_.instructions;
  after_call_ = stop == TracedProcess::Stop::kStepped && instruction == Instruction::kSystemCall &&
                before.rax != SYS_rt_sigreturn;
  switch (stop) {
    case TracedProcess::Stop::kEnded:
      break;
    case TracedProcess::Stop::kExecuted:
      BeginAtRoot();
      break;
    case TracedProcess::Stop::kSignalled:
      FollowSignal(instruction, before);
      break;
    case TracedProcess::Stop::kStepped:
      FollowInstruction(instruction, before);
      break;
  }
  return stop;
}

Instruction StepOracle::InstructionAtPc() const {
  std::array<std::byte, kMaxInstruction> code{};
  const size_t size = view_.ReadSome(process_.pc(), code);
  return Classify(std::span(code).first(size));
}

void StepOracle::FollowSignal(Instruction instruction, const user_regs_struct& before) {
  ShadowStack::Interrupted interrupted;
  if (!EnteredHandler(before, interrupted)) {
    // It has no handler: the instruction was executed as always.
    FollowInstruction(instruction, before);
    return;
  }
  CountAll();
  const Address sp = process_.sp();
  shadow_.EnterHandler(regions_.Of(sp), {sp, Address(view_.ReadWord(sp))}, interrupted);
}

// The kernel's signal frame (struct rt_sigframe of arch/x86/include/asm/sigframe.h) is the
// handler's return address and a ucontext, which says where rt_sigreturn will go on.
bool StepOracle::EnteredHandler(const user_regs_struct& before,
                                ShadowStack::Interrupted& interrupted) {
  ucontext_t context{};
  const Address at(process_.sp().value() + 8);
  if (!view_.Read(at, std::as_writable_bytes(std::span(&context, 1)))) return false;
  const auto* const registers = context.uc_mcontext.gregs;
  const uint64_t sp = static_cast<uint64_t>(registers[REG_RSP]);
  const uint64_t pc = static_cast<uint64_t>(registers[REG_RIP]);
  constexpr uint64_t kSystemCallSize = 2;  // one that is restarted
  if (sp != before.rsp || before.rip - pc > kSystemCallSize) return false;
  interrupted = {.region = regions_.Of(Address(sp)), .pc = Address(pc), .sp = Address(sp)};
  return true;
}

void StepOracle::FollowInstruction(Instruction instruction, const user_regs_struct& before) {
  const Address top_slot = shadow_.TopSlot();
  const ShadowStack::Flow flow = FollowCalls(instruction, before);
  const ShadowStack::Change change =
      shadow_.Settle(regions_.Of(process_.sp()), process_.sp(), flow, read_word_);
  SettlePending(flow, change, top_slot);
}

ShadowStack::Flow StepOracle::FollowCalls(Instruction instruction, const user_regs_struct& before) {
  const Address sp = process_.sp();
  switch (instruction) {
    case Instruction::kCall:
      if (sp.value() + 8 == before.rsp) {
        const Address return_address(view_.ReadWord(sp));
        // A call to the next instruction only asks for its address.
        if (return_address != process_.pc()) shadow_.Push({sp, return_address});
      }
      return ShadowStack::Flow::kJump;
    case Instruction::kReturn:
      FollowReturn(before);
      return ShadowStack::Flow::kReturn;
    case Instruction::kJump:
      return ShadowStack::Flow::kJump;
    case Instruction::kSystemCall:
      if (ChangesMappings(before.rax)) view_.ForgetMappings();
      if (before.rax != SYS_rt_sigreturn) return ShadowStack::Flow::kSequential;
      shadow_.LeaveHandler();
      return ShadowStack::Flow::kJump;
    case Instruction::kOther:
      break;
  }
  return ShadowStack::Flow::kSequential;
}

// A return from where no call was made is how contexts are switched; but if frames were taken on
// trust, one of them was wrong.
void StepOracle::FollowReturn(const user_regs_struct& before) {
  const Address slot(before.rsp);
  if (trusted_.erase(slot) > 0 && shadow_.TopSlot() == slot) {
    ++findings_.returned;
  } else if (on_trust_ && shadow_.TopSlot() != slot) {
    Count({.instruction = findings_.instructions,
           .unwound = {.frames = {{Address(before.rip), slot}}},
           .truth = shadow_.Frames(process_.pc(), process_.sp()),
           .registers = before,
           .differs_at = slot});
  }
}

void StepOracle::Check() {
  UserRegisters registers = ToUserRegisters(process_.registers());
  registers.after_call = after_call_;
  UnwoundStack unwound = Unwind(registers, view_);
  // In a system call the instruction to look up is the one before.
  const Address leaf(registers.pc.value() - (after_call_ ? 1 : 0));
  std::vector<UnwoundFrame> truth = shadow_.Frames(leaf, process_.sp());
  const Verdict verdict = Compare(unwound, truth);
  if (verdict == Verdict::kExact || verdict == Verdict::kUnsureEnd) {
    CountRight(verdict, unwound);
  } else {
    Postpone(verdict, std::move(unwound), std::move(truth));
  }
}

void StepOracle::Postpone(Verdict verdict, UnwoundStack unwound, std::vector<UnwoundFrame> truth) {
  const size_t index = FirstDifference(unwound, truth);
  pending_.push_back({.instruction = findings_.instructions,
                      .verdict = verdict,
                      .unwound = std::move(unwound),
                      .truth = std::move(truth),
                      .registers = process_.registers(),
                      .differs_at = {}});
  // Frames too many are beyond the root, which is never returned to.
  Pending& pending = pending_.back();
  pending.differs_at =
      index < pending.truth.size() ? pending.truth[index].sp : Address(~uint64_t{0});
}

// To be called after each instruction; `top_slot` is that of the shadow stack before it.
void StepOracle::SettlePending(ShadowStack::Flow flow, ShadowStack::Change change,
                               Address top_slot) {
  const uint64_t now = findings_.instructions;
  if (change == ShadowStack::Change::kIrregular) {
    if (now > leaving_until_) left_from_ = top_slot;
    leaving_until_ = now + kLastSteps;
  }
  if (pending_.empty()) return;
  if (now <= leaving_until_ && flow != ShadowStack::Flow::kSequential) ResolveByJump();
  const auto settled =
      std::stable_partition(pending_.begin(), pending_.end(), [&](const Pending& pending) {
        const bool returned_to = flow == ShadowStack::Flow::kReturn &&
                                 change == ShadowStack::Change::kNone &&
                                 pending.differs_at <= process_.sp();
        return !returned_to && now - pending.instruction <= kLongestJump;
      });
  std::for_each(settled, pending_.end(), [this](const Pending& pending) { Count(pending); });
  pending_.erase(settled, pending_.end());
}

// Control has jumped out of calls, perhaps not for the last time.
void StepOracle::ResolveByJump() {
  const std::vector<UnwoundFrame> truth = shadow_.Frames(process_.pc(), process_.sp());
  const Address caller(left_from_.value() + 8);
  std::erase_if(pending_, [&](const Pending& pending) {
    if (CountIfAhead(pending.unwound, truth)) return true;
    // Right up to the function that has left its caller, and more functions.
    const bool leaving = caller <= pending.differs_at && pending.differs_at <= process_.sp() &&
                         caller < process_.sp() && EndsHonestly(pending.unwound, pending.truth);
    findings_.leaving += leaving ? 1 : 0;
    return leaving;
  });
}

bool StepOracle::CountIfAhead(const UnwoundStack& unwound, const std::vector<UnwoundFrame>& truth) {
  if (unwound.frames.size() < 2) return false;
  for (const bool by_return : {true, false}) {
    const Verdict verdict = Compare(CallersOf(unwound, by_return), truth);
    if (verdict == Verdict::kWrong) continue;
    ++findings_.ahead;
    CountRight(verdict, unwound);
    return true;
  }
  return false;
}

void StepOracle::CountAll() {
  for (const Pending& pending : pending_) Count(pending);
  pending_.clear();
  leaving_until_ = 0;
}

void StepOracle::Count(const Pending& pending) {
  if (pending.verdict == Verdict::kWrong) {
    ++findings_.wrong;
    AddExample(pending);
  } else {
    CountRight(pending.verdict, pending.unwound);
  }
}

// REQUIRES: `verdict` is not kWrong.
void StepOracle::CountRight(Verdict verdict, const UnwoundStack& unwound) {
  if (verdict == Verdict::kExact) {
    ++findings_.exact;
    return;
  }
  ++(verdict == Verdict::kCut ? findings_.cut : findings_.unsure_end);
  ++findings_.early[std::string(Name(unwound.end))][view_.Describe(unwound.frames.back().pc)];
}

void StepOracle::AddExample(const Pending& pending) {
  if (findings_.examples.size() >= kExamples) return;
  findings_.examples.push_back(
      fmt::format("WRONG at instruction {}: {}\n{} unwound ({}):\n{} truth:\n{}",
                  pending.instruction, view_.Describe(Address(pending.registers.rip)),
                  DescribeRegisters(pending.registers), Name(pending.unwound.end),
                  DescribeStack(pending.unwound.frames), DescribeStack(pending.truth)));
}

std::string StepOracle::DescribeStack(const std::vector<UnwoundFrame>& frames) {
  std::string text;
  for (const UnwoundFrame& frame : std::span(frames).first(std::min(frames.size(), kFramesShown))) {
    fmt::format_to(std::back_inserter(text), "    sp {:#x} {}\n", frame.sp.value(),
                   view_.Describe(frame.pc));
  }
  if (frames.size() > kFramesShown) {
    fmt::format_to(std::back_inserter(text), "    and {} more\n", frames.size() - kFramesShown);
  }
  return text;
}

}  // namespace pyrometer::oracle
