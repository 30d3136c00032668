/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwinder: from one frame of a user stack to its caller's. One source for the kernel side and,
 * compiled as C++ by src/unwind, for user space.
 *
 * A frame's caller is found by call frame information (an unwind table's rule). Where none covers
 * the pc, it is found by a validated frame pointer; if the leaf was written by hand, by a return
 * address that pyro_try_caller finds on the stack. Otherwise the stack ends, with a reason.
 *
 * The includer must define struct pyro_walk with these members:
 *   struct pyro_cursor cursor;
 *   __u64 window[PYRO_STACK_WINDOW]; __u64 window_start;   a piece of the user stack
 *   struct pyro_unwind_rule caller;   the rule of one that is tried
 *   __u32 user_frames;
 * and four functions, declared below: pyro_read_user, pyro_read_code, pyro_find_rule,
 * pyro_push_frame.
 */
#ifndef PYROMETER_UNWINDER_BPF_H
#define PYROMETER_UNWINDER_BPF_H

#include "call_site.bpf.h"
#include "cursor.bpf.h"
#include "machine.bpf.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/abi/unwind.h"

/* The largest frame that a frame pointer may span. */
#define PYRO_MAX_FRAME_SIZE (8ULL << 20)
/* The lowest address that the kernel lets anyone map by default (vm.mmap_min_addr). */
#define PYRO_MIN_USER_ADDRESS 4096ULL
/* Five levels of page tables: 2^56; nothing of user space lies above. */
#define PYRO_MAX_USER_ADDRESS (1ULL << 56)
/* Start of an empty window: so high that no user address lies in it. */
#define PYRO_NO_WINDOW (1ULL << 63)

/* What a step returns if it was not the last one; else it returns enum pyro_stack_end. */
#define PYRO_WALK_ON (-1)
/* The frame's place is unknown here; the frame has not been pushed. */
#define PYRO_WALK_UNKNOWN (-2)
/* Its rule is PYRO_RULE_EXOTIC; the frame has been pushed. */
#define PYRO_WALK_EXOTIC (-3)
/* It is the leaf, in hand-written code with neither a rule nor (probably) a frame pointer; the
 * frame has been pushed. pyro_try_caller may find its caller. */
#define PYRO_WALK_HAND_WRITTEN (-4)

/* What pyro_find_rule says of an address. */
enum pyro_place {
  PYRO_PLACE_NOWHERE, /* no executable memory: no return address leads there */
  PYRO_PLACE_UNKNOWN, /* cannot be told now */
  PYRO_PLACE_UNREAD,  /* a file's code, and what rules it has cannot be told for some time: only the
                       * frame pointer is there to follow. It may be that of a function further
                       * up; so a stack with such a frame is never complete */
  PYRO_PLACE_ANONYMOUS, /* executable and no file: JIT code, without call frame information */
  PYRO_PLACE_OBJECT,    /* a file's code; its rule is given. No rule: compiled with frame pointers.
                         * PYRO_RULE_NONE: code without any, in a file that has rules elsewhere */
};

/* Reads `size` bytes of user memory; 0 on success. */
static __always_inline long pyro_read_user(struct pyro_walk *walk, void *out, __u32 size,
                                           __u64 address);
/* The same for the text at an address. */
static __always_inline long pyro_read_code(struct pyro_walk *walk, void *out, __u32 size,
                                           __u64 address);
/* Enum pyro_place; sets *rule if it is PYRO_PLACE_OBJECT. It may be gone at the next call. */
static __always_inline int pyro_find_rule(struct pyro_walk *walk, __u64 pc,
                                          const struct pyro_unwind_rule **rule);
/* Takes the frame at walk->cursor, whose place was looked up last. */
static __always_inline void pyro_push_frame(struct pyro_walk *walk);

static __always_inline bool pyro_in_window(const struct pyro_walk *walk, __u64 address)
{
  /* A program's registers may not hold a user address. */
  return address < PYRO_MAX_USER_ADDRESS &&
         address - walk->window_start <= sizeof(walk->window) - sizeof(__u64);
}

/* Makes the window hold [low, high + 8), if they are close enough to each other.
 *
 * A helper call costs about 50 ns, and little more for 1024 bytes than for 8. Stacks are read
 * upwards, so a window of the stack is read at a time, and mostly serves the next frames as well.
 */
static __always_inline void pyro_look_at_stack(struct pyro_walk *walk, __u64 low, __u64 high)
{
  if (pyro_in_window(walk, low) && pyro_in_window(walk, high)) return;
  walk->window_start = low;
  /* The end of the stack may be near: then its words are read one by one. */
  if (pyro_read_user(walk, walk->window, sizeof(walk->window), low))
    walk->window_start = PYRO_NO_WINDOW;
}

/* The word at `address`; false if it cannot be read. */
static __always_inline bool pyro_read_word(struct pyro_walk *walk, __u64 address, __u64 *out)
{
  const __u64 offset = address - walk->window_start;
  if (pyro_in_window(walk, address) && offset % sizeof(__u64) == 0) {
    *out = walk->window[(offset >> 3) & (PYRO_STACK_WINDOW - 1)];
    return true;
  }
  return pyro_read_user(walk, out, sizeof(*out), address) == 0;
}

/* The value of `reg` in the cursor's frame, for its CFA; false if it is unknown.
 *
 * If a function keeps its CFA in a register that calls may change, its call frame information is
 * only true if its callees leave that register alone. Hand-written code does this: OpenSSL's
 * AES-GCM calls its inner loop with the CFA in RAX. So the leaf's value is valid for its caller. */
static __always_inline bool pyro_register(const struct pyro_cursor *cursor, __u32 reg, __u64 *out)
{
  if (reg == PYRO_REGISTER_SP) {
    *out = cursor->sp;
    return true;
  }
  if (reg == PYRO_REGISTER_FP) {
    *out = cursor->fp;
    return cursor->fp_known;
  }
#if defined(PYRO_REGISTER_RBX)
  if (reg == PYRO_REGISTER_RBX) {
    *out = cursor->rbx;
    return cursor->rbx_known;
  }
#endif
  reg &= PYRO_REGISTERS - 1;
  *out = cursor->registers[reg];
  return cursor->has_registers ||
         (cursor->has_callee_registers && ((PYRO_VOLATILE_REGISTERS >> reg) & 1));
}

/* Moves the cursor, whose `registers` are those of a thread, to where that was interrupted.
 * `after_call`: `pc` follows the instruction that is being executed (a system call). */
static __always_inline void pyro_start(struct pyro_cursor *cursor, __u64 pc, bool after_call)
{
  cursor->pc = pc - after_call;
  cursor->sp = cursor->registers[PYRO_REGISTER_SP];
  cursor->fp = cursor->registers[PYRO_REGISTER_FP];
#if defined(PYRO_REGISTER_RBX)
  cursor->rbx = cursor->registers[PYRO_REGISTER_RBX];
#endif
  cursor->has_registers = 1;
  cursor->fp_known = 1;
  cursor->rbx_known = 1;
  cursor->if_nowhere = PYRO_END_BAD_RETURN_ADDRESS;
  cursor->has_callee_registers = 0;
  cursor->hand_written = 0;
  cursor->leaving = 0;
  cursor->unsure = 0;
}

/* How the stack ends if the cursor's frame has a null return address or frame pointer. That marks
 * the outermost frame, except for
 * - a leaf: it may be in the middle of something (glibc's swapcontext after the switch), or use
 *   the register for something else;
 * - JIT code, which may use the register for anything;
 * - the callers of a function that is leaving them.
 * `else_end` is the reason in these cases. */
static __always_inline int pyro_end_by_null(const struct pyro_cursor *cursor, int else_end)
{
  const bool anything = cursor->has_registers || cursor->leaving || else_end == PYRO_END_JIT;
  return anything ? else_end : PYRO_END_COMPLETE;
}

/* Moves the cursor to the caller's frame. Returns PYRO_WALK_ON or how the stack ended: with
 * `if_nowhere` if the return address is invalid. */
static __always_inline int pyro_go_on(struct pyro_cursor *cursor, __u64 return_address, __u64 sp,
                                      int if_nowhere)
{
  const __u64 address = pyro_strip(return_address);
  if (!address) return pyro_end_by_null(cursor, if_nowhere);
  if (address < PYRO_MIN_USER_ADDRESS || address >= PYRO_MAX_USER_ADDRESS) return if_nowhere;
  /* Look up the address of the call, not of what follows it. */
  cursor->pc = address - 1;
  cursor->sp = sp;
  cursor->has_callee_registers = cursor->has_registers;
  cursor->has_registers = 0;
  cursor->if_nowhere = (__u8)if_nowhere;
  cursor->hand_written = 0;
  return PYRO_WALK_ON;
}

/* The canonical frame address by `rule`. Returns PYRO_WALK_ON, or enum pyro_stack_end if there is
 * none.
 */
static __always_inline int pyro_cfa(struct pyro_walk *walk, const struct pyro_unwind_rule *rule,
                                    __u64 *out)
{
  const struct pyro_cursor *cursor = &walk->cursor;
  __u64 cfa;
  if (!pyro_register(cursor, rule->cfa_register, &cfa)) return PYRO_END_UNSUPPORTED;
  cfa += (__s64)rule->cfa_offset;
  if (rule->kind == PYRO_RULE_PLT) {
    if ((cursor->pc & 15) >= (__u64)(__s64)rule->cfa_add) cfa += 8;
  } else if (rule->kind == PYRO_RULE_DEREFERENCE) {
    if (!pyro_read_word(walk, cfa, &cfa)) return PYRO_END_UNREADABLE;
    cfa += (__s64)rule->cfa_add;
  }
  if ((cfa & 7) || cfa >= PYRO_MAX_USER_ADDRESS) return PYRO_END_BAD_CFA;
  /* The stack grows downwards: a caller's frame lies above. A leaf may not have touched it. */
  if (rule->kind != PYRO_RULE_SWITCHED && cfa < cursor->sp + !cursor->has_registers)
    return PYRO_END_BAD_CFA;
  *out = cfa;
  return PYRO_WALK_ON;
}

/* One step by call frame information.
 *
 * A frame pointer that points above its own frame has been restored already: GCC does not say so in
 * the epilogues of functions that realign the stack. */
static __always_inline int pyro_step_by_rule(struct pyro_walk *walk,
                                             const struct pyro_unwind_rule *rule)
{
  struct pyro_cursor *cursor = &walk->cursor;
  __u64 cfa;
  const int failed = pyro_cfa(walk, rule, &cfa);
  if (failed != PYRO_WALK_ON) return failed;

  __s32 low = rule->ra == PYRO_SAVED_AT_CFA ? rule->ra_offset : -8;
  if (rule->fp == PYRO_SAVED_AT_CFA && rule->fp_offset < low) low = rule->fp_offset;
  pyro_look_at_stack(walk, cfa + (__s64)low, cfa - sizeof(__u64));

  __u64 return_address;
  if (rule->ra == PYRO_SAVED_AT_CFA) {
    if (!pyro_read_word(walk, cfa + (__s64)rule->ra_offset, &return_address))
      return PYRO_END_UNREADABLE;
  } else if (rule->ra == PYRO_SAVED_AT_FP) {
    if (!cursor->fp_known) return PYRO_END_UNSUPPORTED;
    if (!pyro_read_word(walk, cursor->fp + (__s64)rule->ra_offset, &return_address))
      return PYRO_END_UNREADABLE;
  } else {
#if defined(PYRO_REGISTER_LR)
    const __u32 reg = rule->ra == PYRO_SAVED_SAME ? PYRO_REGISTER_LR : (__u32)rule->ra_offset;
#else
    const __u32 reg = (__u32)rule->ra_offset;
#endif
    if (!cursor->has_registers) return PYRO_END_UNSUPPORTED;
    return_address = cursor->registers[reg & (PYRO_REGISTERS - 1)];
  }
#if defined(PYRO_REGISTER_RBX)
  if (rule->rbx_offset == PYRO_RBX_LOST)
    cursor->rbx_known = 0;
  else if (rule->rbx_offset != PYRO_RBX_SAME)
    cursor->rbx_known = pyro_read_word(walk, cfa + (__s64)rule->rbx_offset, &cursor->rbx);
#endif
  if (rule->fp == PYRO_SAVED_AT_CFA)
    cursor->fp_known = pyro_read_word(walk, cfa + (__s64)rule->fp_offset, &cursor->fp);
  else if (rule->fp == PYRO_SAVED_AT_FP && cursor->fp + (__s64)rule->fp_offset < cfa)
    cursor->fp_known =
        cursor->fp_known && pyro_read_word(walk, cursor->fp + (__s64)rule->fp_offset, &cursor->fp);
  else if (rule->fp == PYRO_SAVED_LOST)
    cursor->fp_known = 0;
  if (rule->kind == PYRO_RULE_LEAVING) {
    cursor->leaving = 1;
    /* No call precedes a landing pad, and what does may have another rule. */
    return_address += rule->fp == PYRO_SAVED_SAME;
  }
  return pyro_go_on(cursor, return_address, cfa, PYRO_END_BAD_RETURN_ADDRESS);
}

/* One step by the frame pointer: {saved frame pointer, return address} lie at it, on x86_64 and
 * arm64 alike. The chain ends with a null in either (pyro_end_by_null). `nothing` is the reason
 * if there is no valid frame pointer. */
static __always_inline int pyro_step_by_frame_pointer(struct pyro_walk *walk, int nothing)
{
  struct pyro_cursor *cursor = &walk->cursor;
  const __u64 fp = cursor->fp;
  __u64 return_address, saved;

  if (!cursor->fp_known) return nothing;
  if (!fp) return pyro_end_by_null(cursor, nothing);
  if ((fp & 7) || fp < cursor->sp || fp - cursor->sp > PYRO_MAX_FRAME_SIZE) return nothing;
  pyro_look_at_stack(walk, fp, fp + sizeof(__u64));
  if (!pyro_read_word(walk, fp, &saved) ||
      !pyro_read_word(walk, fp + sizeof(__u64), &return_address))
    return nothing;
  cursor->fp = saved;
  cursor->rbx_known = 0;
  return pyro_go_on(cursor, return_address, fp + 2 * sizeof(__u64), nothing);
}

/* Out of a signal frame, to what the signal interrupted. */
static __always_inline int pyro_step_signal(struct pyro_walk *walk)
{
  struct pyro_cursor *cursor = &walk->cursor;
  const __u64 saved = cursor->sp + PYRO_SIGNAL_REGISTERS;
#if defined(PYRO_REGISTER_LR)
  __u64 rest[2];
  if (pyro_read_user(walk, cursor->registers, 31 * sizeof(__u64), saved) ||
      pyro_read_user(walk, rest, sizeof(rest), saved + 31 * sizeof(__u64)))
    return PYRO_END_UNREADABLE;
  cursor->sp = cursor->registers[PYRO_REGISTER_SP] = rest[0];
  cursor->pc = rest[1];
#else
  /* struct sigcontext: r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. */
  walk->window_start = PYRO_NO_WINDOW;
  if (pyro_read_user(walk, walk->window, PYRO_SIGNAL_WORDS * sizeof(__u64), saved))
    return PYRO_END_UNREADABLE;
  const __u64 *from = walk->window;
  __u64 *to = cursor->registers;
  to[8] = from[0], to[9] = from[1], to[10] = from[2], to[11] = from[3];
  to[12] = from[4], to[13] = from[5], to[14] = from[6], to[15] = from[7];
  to[5] = from[8], to[4] = from[9], to[6] = from[10], to[3] = from[11];
  to[1] = from[12], to[0] = from[13], to[2] = from[14], to[7] = from[15];
  cursor->sp = from[15];
  cursor->pc = from[16];
  cursor->rbx = to[PYRO_REGISTER_RBX];
  cursor->rbx_known = 1;
#endif
  cursor->fp = cursor->registers[PYRO_REGISTER_FP];
  cursor->fp_known = 1;
  cursor->has_registers = 1;
  cursor->if_nowhere = PYRO_END_BAD_RETURN_ADDRESS;
  return PYRO_WALK_ON;
}

#include "hand_written.bpf.h"

/* The step from a frame that has been pushed. */
static __always_inline int pyro_step_from(struct pyro_walk *walk, int place,
                                          const struct pyro_unwind_rule *rule)
{
  struct pyro_cursor *cursor = &walk->cursor;
  if (place == PYRO_PLACE_ANONYMOUS) return pyro_step_by_frame_pointer(walk, PYRO_END_JIT);
  if (place == PYRO_PLACE_UNREAD) {
    cursor->unsure = 1;
    return pyro_step_by_frame_pointer(walk, PYRO_END_NOT_READY);
  }
  if (place == PYRO_PLACE_NOWHERE || !rule)
    return pyro_step_by_frame_pointer(walk, PYRO_END_NO_UNWIND_INFO);
  switch (rule->kind) {
    case PYRO_RULE_NONE:
      if (cursor->has_registers || cursor->hand_written) return PYRO_WALK_HAND_WRITTEN;
      return pyro_step_by_frame_pointer(walk, PYRO_END_NO_UNWIND_INFO);
    case PYRO_RULE_END:
      return PYRO_END_COMPLETE;
    case PYRO_RULE_SIGNAL:
      return pyro_step_signal(walk);
    case PYRO_RULE_EXOTIC:
      return PYRO_WALK_EXOTIC;
    default:
      return pyro_step_by_rule(walk, rule);
  }
}

/* Pushes the cursor's frame and moves the cursor to its caller. Returns PYRO_WALK_ON or another
 * value of its enum, or enum pyro_stack_end if the stack ended. */
static __always_inline int pyro_step(struct pyro_walk *walk)
{
  struct pyro_cursor *cursor = &walk->cursor;
  const struct pyro_unwind_rule *rule = 0;
  const int place = pyro_find_rule(walk, cursor->pc, &rule);

  if (place == PYRO_PLACE_UNKNOWN) return PYRO_WALK_UNKNOWN;
  if (place == PYRO_PLACE_NOWHERE && walk->user_frames > 0) return cursor->if_nowhere;
  if (walk->user_frames >= PYRO_MAX_USER_FRAMES) return PYRO_END_TRUNCATED;
  pyro_push_frame(walk);
  const int end = pyro_step_from(walk, place, rule);
  return end == PYRO_END_COMPLETE && cursor->unsure ? PYRO_END_NOT_READY : end;
}

#endif
