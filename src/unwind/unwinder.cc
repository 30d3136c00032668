// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwinder.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/abi/unwind.h"
#include "unwind/budgeted_view.h"
#include "unwind/call_site.h"
#include "unwind/exotic.h"
#include "unwind/known_registers.h"
#include "unwind/registers.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "cursor.bpf.h"

namespace pyrometer {
namespace {

// What the kernel's unwinder works on, over an UnwindView. Its names are the kernel side's.
struct pyro_walk {
  pyro_cursor cursor;
  __u64 window[PYRO_STACK_WINDOW];
  __u64 window_start;
  pyro_unwind_rule caller;
  __u32 user_frames;
  BudgetedView* view;
  UnwindView::Found found;  // the place that was looked up last
  UnwoundStack* stack;
};

// The functions of this header belong to this pyro_walk, so it is read in here.
#include "unwinder.bpf.h"

static_assert(kStackPointer == PYRO_REGISTER_SP);
static_assert(kStackEnds == PYRO_STACK_ENDS);

long pyro_read_user(pyro_walk* walk, void* out, __u32 size, __u64 address) {
  const std::span<std::byte> bytes(static_cast<std::byte*>(out), size);
  return walk->view->Read(Address(address), bytes) ? 0 : -1;
}

long pyro_read_code(pyro_walk* walk, void* out, __u32 size, __u64 address) {
  const std::span<std::byte> bytes(static_cast<std::byte*>(out), size);
  return walk->view->ReadCode(Address(address), bytes) ? 0 : -1;
}

int pyro_find_rule(pyro_walk* walk, __u64 pc, const pyro_unwind_rule** rule) {
  walk->found = walk->view->Find(Address(pc));
  switch (walk->found.place) {
    case UnwindView::Place::kNowhere:
      return PYRO_PLACE_NOWHERE;
    case UnwindView::Place::kUnknown:
      return PYRO_PLACE_UNKNOWN;
    case UnwindView::Place::kAnonymous:
      return PYRO_PLACE_ANONYMOUS;
    case UnwindView::Place::kUnread:
      return PYRO_PLACE_UNREAD;
    case UnwindView::Place::kNoTable:
      return PYRO_PLACE_OBJECT;
    case UnwindView::Place::kTable:
      *rule = walk->found.rule;
      if ((*rule)->kind == PYRO_RULE_NONE && walk->found.table->sparse) *rule = nullptr;
      return PYRO_PLACE_OBJECT;
  }
  return PYRO_PLACE_NOWHERE;
}

void pyro_push_frame(pyro_walk* walk) {
  walk->stack->frames.push_back({Address(walk->cursor.pc), Address(walk->cursor.sp)});
  ++walk->user_frames;
}

pyro_walk StartOf(const UserRegisters& registers, BudgetedView& view, UnwoundStack& stack) {
  pyro_walk walk{};
  std::ranges::copy(registers.values, std::begin(walk.cursor.registers));
  pyro_start(&walk.cursor, registers.pc.value(), registers.after_call);
  walk.window_start = PYRO_NO_WINDOW;
  walk.view = &view;
  walk.stack = &stack;
  return walk;
}

// What is known in the cursor's frame.
KnownRegisters KnownIn(const pyro_cursor& cursor) {
  KnownRegisters known;
  if (cursor.has_registers != 0) {
    for (uint8_t reg = 0; reg < kHostMachine.general_registers; ++reg) {
      known.Set(reg, cursor.registers[reg]);
    }
  }
  known.Set(PYRO_REGISTER_SP, cursor.sp);
  if (cursor.fp_known != 0) known.Set(PYRO_REGISTER_FP, cursor.fp);
#if defined(PYRO_REGISTER_RBX)
  if (cursor.rbx_known != 0) known.Set(PYRO_REGISTER_RBX, cursor.rbx);
#endif
  return known;
}

// After a signal frame: all registers of what the signal interrupted, if they are all known.
void TakeRegisters(const KnownRegisters& known, pyro_cursor& cursor) {
  cursor.has_registers = 1;
  for (uint8_t reg = 0; reg < kHostMachine.general_registers; ++reg) {
    if (!known.Get(reg)) cursor.has_registers = 0;
    cursor.registers[reg] = known.Get(reg).value_or(0);
  }
}

// The step that the kernel's code leaves to us. Returns what pyro_step() does.
int StepExotic(pyro_walk& walk) {
  pyro_cursor& cursor = walk.cursor;
  const UnwindTable& table = *walk.found.table;
  const auto number = static_cast<uint32_t>(walk.found.rule->cfa_offset);
  if (number >= table.exotic.size()) return PYRO_END_UNSUPPORTED;
  const ExoticRule& rule = table.exotic[number];
  if (!walk.view->Spend(rule.registers.size() + 1)) return PYRO_END_TRUNCATED;
  const Result<CallerFrame> caller = UnwindExotic(
      rule, kHostMachine, KnownIn(cursor), Address(cursor.pc),
      [&](Address address, std::span<std::byte> out) { return walk.view->Read(address, out); });
  if (!caller) return PYRO_END_UNSUPPORTED;
  const std::optional<uint64_t> sp = caller->registers.Get(PYRO_REGISTER_SP);
  // The stack grows downwards, but a signal handler may have one of its own, that lies anywhere.
  const bool by_signal = rule.signal_frame;
  if (!sp || (*sp < cursor.sp && !by_signal)) return PYRO_END_BAD_CFA;
  const std::optional<uint64_t> fp = caller->registers.Get(PYRO_REGISTER_FP);
  cursor.fp_known = fp ? 1 : 0;
  cursor.fp = fp.value_or(0);
#if defined(PYRO_REGISTER_RBX)
  const std::optional<uint64_t> rbx = caller->registers.Get(PYRO_REGISTER_RBX);
  cursor.rbx_known = rbx ? 1 : 0;
  cursor.rbx = rbx.value_or(0);
#endif
  const int code = pyro_go_on(&cursor, caller->pc.value(), *sp, PYRO_END_BAD_RETURN_ADDRESS);
  if (by_signal) {
    cursor.pc = caller->pc.value();
    TakeRegisters(caller->registers, cursor);
  }
  return code;
}

// Walks on from where `walk` stands, as far as rules and frame pointers lead. Returns what the last
// step did.
int WalkOn(pyro_walk& walk) {
  int code = PYRO_WALK_ON;
  while (code == PYRO_WALK_ON) {
    code = pyro_step(&walk);
    if (code == PYRO_WALK_EXOTIC) code = StepExotic(walk);
  }
  return code;
}

// PYRO_WALK_UNKNOWN ends a walk here: nobody else will know.
StackEnd EndOf(int code) {
  return code < 0 ? StackEnd::kNotReady : static_cast<StackEnd>(code);
}

// Looks for the return address of hand-written code that has no call frame information: such
// functions (codecs, cryptography, _init) push some registers, make room for some values, and
// nobody says how much.
//
// The words above the stack pointer are tried in turn. A return address lies behind a call
// instruction, in a function with a rule, and from there the stack can be unwound to its root; or
// it lies in hand-written code again, behind a direct call that leads to where we are. Words left
// over from earlier calls hardly pass that, for the stack they belonged to is gone. (The direct
// call of a function with a rule need not lead here: that function may have been left by a jump.)
class HandWrittenCode {
 public:
  explicit HandWrittenCode(const pyro_walk& leaf) : leaf_(leaf) {}

  // The rest of the stack, if its root was found.
  std::optional<UnwoundStack> FindCallers() {
    return FindCallersOf(leaf_.cursor.pc, leaf_.cursor.sp, 1);
  }

 private:
  // Beyond that nothing was found in x265, dav1d, libjpeg-turbo and OpenSSL.
  static constexpr uint64_t kMostBytes = 4096;
  // As many registers as a function has to preserve.
  static constexpr uint64_t kPushedBytes = 6 * sizeof(uint64_t);

  // However many candidates a stack holds (it may have been made for that), this is all that is
  // done for one sample.
  static constexpr int kMostWords = 2048;
  static constexpr int kMostTries = 32;

  // kUnknown: it may be the caller, and nothing above it may be taken.
  enum class Candidate : uint8_t { kNone, kUnknown, kWithRule, kHandWritten };

  bool ReadWord(uint64_t address, uint64_t& word) const {
    return leaf_.view->Read(Address(address), std::as_writable_bytes(std::span(&word, 1)));
  }

  std::optional<UnwoundStack> FindCallersOf(uint64_t pc, uint64_t sp, int depth) {
    for (uint64_t slot = sp; slot < sp + kMostBytes; slot += sizeof(uint64_t)) {
      uint64_t word = 0;
      if (--words_left_ < 0 || !ReadWord(slot, word)) return std::nullopt;
      std::optional<UnwoundStack> callers;
      switch (Judge(pc, word)) {
        case Candidate::kNone:
          break;
        case Candidate::kUnknown:
          return std::nullopt;
        case Candidate::kWithRule:
          callers = UnwindFrom(sp, slot, word);
          break;
        case Candidate::kHandWritten:
          callers = depth < PYRO_MAX_HAND_WRITTEN ? Behind(slot, word, depth) : std::nullopt;
          break;
      }
      // Without its code a candidate is passed that may be the caller.
      if (callers || leaf_.view->IsCodeLate()) return callers;
    }
    return std::nullopt;
  }

  Candidate Judge(uint64_t pc, uint64_t word) const {
    if (word < PYRO_MIN_USER_ADDRESS || word >= PYRO_MAX_USER_ADDRESS) return Candidate::kNone;
    const UnwindView::Found found = leaf_.view->Find(Address(word - 1));
    const bool unknown =
        found.place == UnwindView::Place::kUnknown || found.place == UnwindView::Place::kUnread;
    if (!unknown && (found.place != UnwindView::Place::kTable || found.table->sparse)) {
      return Candidate::kNone;
    }
    std::array<std::byte, kCallSiteBytes> code;
    if (!leaf_.view->ReadCode(Address(word - code.size()), code)) return Candidate::kNone;
    const std::optional<CallSite> site = CallSiteBefore(Address(word), code);
    if (!site) return Candidate::kNone;
    if (unknown) return Candidate::kUnknown;
    switch (found.rule->kind) {
      case PYRO_RULE_NONE: {
        const bool leads_here = site->target && site->target->value() <= pc &&
                                pc - site->target->value() < PYRO_LONGEST_FUNCTION;
        return leads_here ? Candidate::kHandWritten : Candidate::kNone;
      }
      case PYRO_RULE_SIGNAL:
        return Candidate::kNone;
      default:
        return Candidate::kWithRule;
    }
  }

  std::optional<UnwoundStack> Behind(uint64_t slot, uint64_t return_address, int depth) {
    const uint64_t sp = slot + sizeof(uint64_t);
    std::optional<UnwoundStack> callers = FindCallersOf(return_address - 1, sp, depth + 1);
    if (callers) {
      callers->frames.insert(callers->frames.begin(), {Address(return_address - 1), Address(sp)});
    }
    return callers;
  }

  // A caller may need the frame pointer, which the code may have pushed before it used it.
  std::optional<UnwoundStack> UnwindFrom(uint64_t sp, uint64_t slot, uint64_t return_address) {
    if (std::optional<UnwoundStack> callers = Try(slot, return_address, leaf_.cursor.fp)) {
      return callers;
    }
    for (uint64_t pushed = slot; pushed > sp && slot - pushed < kPushedBytes;) {
      pushed -= sizeof(uint64_t);
      uint64_t fp = 0;
      if (!ReadWord(pushed, fp) || fp <= slot || fp % sizeof(fp) != 0) continue;
      if (std::optional<UnwoundStack> callers = Try(slot, return_address, fp)) return callers;
    }
    return std::nullopt;
  }

  std::optional<UnwoundStack> Try(uint64_t slot, uint64_t return_address, uint64_t fp) {
    if (--tries_left_ < 0) return std::nullopt;
    UnwoundStack stack;
    pyro_walk walk = leaf_;
    walk.stack = &stack;
    walk.cursor.fp = fp;
    walk.cursor.fp_known = 1;
    walk.cursor.rbx_known = 0;
    pyro_go_on(&walk.cursor, return_address, slot + sizeof(uint64_t), PYRO_END_BAD_RETURN_ADDRESS);
    walk.cursor.has_callee_registers = 0;
    stack.end = EndOf(WalkOn(walk));
    // Truncated at the limit of frames, that is: what the budget ended is not confirmed.
    const bool rooted = stack.end == StackEnd::kComplete || stack.end == StackEnd::kTruncated;
    return rooted && !leaf_.view->exhausted() ? std::optional(std::move(stack)) : std::nullopt;
  }

  const pyro_walk& leaf_;
  int words_left_ = kMostWords;
  int tries_left_ = kMostTries;
};

// True if there are no rules where the frame pointer leads: it is how that code is unwound.
bool FramePointerLeadsToItsKind(const pyro_walk& walk) {
  uint64_t return_address = 0;
  const Address at(walk.cursor.fp + sizeof(uint64_t));
  if (!walk.view->Read(at, std::as_writable_bytes(std::span(&return_address, 1)))) return false;
  const UnwindView::Found found = walk.view->Find(Address(return_address - 1));
  return found.place == UnwindView::Place::kAnonymous ||
         found.place == UnwindView::Place::kNoTable ||
         (found.place == UnwindView::Place::kTable &&
          (found.table->sparse || found.rule->kind == PYRO_RULE_NONE));
}

// As the kernel side looks for it: among fewer words, and without looking further than one caller.
bool FindCallerNearby(pyro_walk& walk) {
  const uint64_t sp = walk.cursor.sp;
  for (uint64_t slot = sp; slot < sp + PYRO_SCAN_WORDS * sizeof(uint64_t); slot += 8) {
    uint64_t word = 0;
    if (!walk.view->Read(Address(slot), std::as_writable_bytes(std::span(&word, 1)))) return false;
    const int candidate = pyro_try_caller(&walk, slot, word);
    if (walk.view->IsCodeLate()) return false;
    if (candidate != PYRO_CANDIDATE_NONE) return candidate == PYRO_CANDIDATE_TAKEN;
  }
  return false;
}

// What pyro_step() does, or how the whole stack ended. Where the caller cannot be found, a frame
// pointer that leads to a function with a rule is not followed: it is that of a caller further up,
// and would leave out the frames between.
int StepHandWritten(pyro_walk& walk) {
  if (FindCallerNearby(walk)) return PYRO_WALK_ON;
  const std::optional<UnwoundStack> callers = HandWrittenCode(walk).FindCallers();
  if (callers) {
    std::vector<UnwoundFrame>& frames = walk.stack->frames;
    frames.insert(frames.end(), callers->frames.begin(), callers->frames.end());
    return static_cast<int>(callers->end);
  }
  if (walk.view->IsCodeLate()) return PYRO_END_NOT_READY;
  if (!FramePointerLeadsToItsKind(walk)) return PYRO_END_NO_UNWIND_INFO;
  return pyro_step_by_frame_pointer(&walk, PYRO_END_NO_UNWIND_INFO);
}

}  // namespace

UnwoundStack Unwind(const UserRegisters& registers, UnwindView& view, const UnwindBudget& budget) {
  UnwoundStack stack;
  BudgetedView budgeted(view, budget);
  pyro_walk walk = StartOf(registers, budgeted, stack);
  int code = PYRO_WALK_ON;
  while (code == PYRO_WALK_ON) {
    code = WalkOn(walk);
    if (code == PYRO_WALK_HAND_WRITTEN) code = StepHandWritten(walk);
  }
  stack.over_budget = budgeted.exhausted();
  stack.end = stack.over_budget ? StackEnd::kTruncated : EndOf(code);
  // A leaf is kept whatever is known of it.
  if (stack.frames.empty()) pyro_push_frame(&walk);
  return stack;
}

}  // namespace pyrometer
