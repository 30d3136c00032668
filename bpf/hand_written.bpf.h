/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the callers of hand-written code, which has no rules. Part of unwinder.bpf.h, which
 * includes it after its steps are defined.
 */
#ifndef PYROMETER_HAND_WRITTEN_BPF_H
#define PYROMETER_HAND_WRITTEN_BPF_H

/* True if a call instruction precedes `return_address`. */
static __always_inline bool pyro_follows_call(struct pyro_walk *walk, __u64 return_address)
{
  __u8 code[PYRO_CALL_SITE_BYTES];
  if (pyro_read_code(walk, code, sizeof(code), return_address - sizeof(code))) return false;
  return pyro_is_call(code);
}

/* Whether a word can be the return address of the cursor's frame, after a step by `rule`. */
static __always_inline bool pyro_leads_on(struct pyro_walk *walk,
                                          const struct pyro_unwind_rule *rule)
{
  const struct pyro_unwind_rule *next = 0;
  __u64 cfa, return_address;
  if (rule->kind == PYRO_RULE_END) return true;
  if (rule->kind < PYRO_RULE_REGISTER || rule->ra != PYRO_SAVED_AT_CFA) return false;
  if (pyro_cfa(walk, rule, &cfa) != PYRO_WALK_ON) return false;
  if (!pyro_read_word(walk, cfa + (__s64)rule->ra_offset, &return_address)) return false;
  return_address = pyro_strip(return_address);
  const int place = pyro_find_rule(walk, return_address - 1, &next);
  if (place == PYRO_PLACE_ANONYMOUS) return true;
  return (place == PYRO_PLACE_OBJECT || place == PYRO_PLACE_UNREAD) &&
         pyro_follows_call(walk, return_address);
}

/* How many words above the stack pointer are searched for the return address of hand-written code.
 * Such functions (codecs, cryptography, _init) push registers and reserve room for values, and do
 * not say how much. */
#define PYRO_SCAN_WORDS 128
/* How far such a function may extend beyond the target of the call that leads to it. */
#define PYRO_LONGEST_FUNCTION 65536
/* How many of them may call each other. */
#define PYRO_MAX_HAND_WRITTEN 4

enum pyro_candidate {
  PYRO_CANDIDATE_NONE,   /* no return address */
  PYRO_CANDIDATE_TAKEN,  /* the cursor is the caller's now */
  PYRO_CANDIDATE_UNSURE, /* it looks like one and cannot be confirmed: what lies above must not be
                          * taken either, or this frame might be left out */
};

/* Whether `word`, at `slot`, is the return address of the cursor's frame, a function without any
 * rule. It must follow a call instruction in a function with a rule, and this rule must either say
 * that the function is the outermost or lead to a return address that also follows a call
 * instruction or is in anonymous memory. Or it lies in hand-written code again, after a direct call
 * to the cursor's pc or to less than PYRO_LONGEST_FUNCTION before it. Leftovers of earlier calls
 * hardly pass this test, because the stack they belonged to is gone. */
static __always_inline int pyro_try_caller(struct pyro_walk *walk, __u64 slot, __u64 word)
{
  struct pyro_cursor *cursor = &walk->cursor;
  const struct pyro_unwind_rule *found = 0;
  const __u64 address = pyro_strip(word);
  __u8 code[PYRO_CALL_SITE_BYTES];
  if (address < PYRO_MIN_USER_ADDRESS || address >= PYRO_MAX_USER_ADDRESS)
    return PYRO_CANDIDATE_NONE;
  const int place = pyro_find_rule(walk, address - 1, &found);
  const bool unknown = place == PYRO_PLACE_UNKNOWN || place == PYRO_PLACE_UNREAD;
  if (!unknown && (place != PYRO_PLACE_OBJECT || !found)) return PYRO_CANDIDATE_NONE;
  if (pyro_read_code(walk, code, sizeof(code), address - sizeof(code))) return PYRO_CANDIDATE_NONE;
  if (!pyro_is_call(code)) return PYRO_CANDIDATE_NONE;
  /* Its rows are not loaded: it may well be the caller. */
  if (unknown || !found) return PYRO_CANDIDATE_UNSURE;
  /* A copy, as there is another look-up before its last use; the BPF stack has no room for it. */
  walk->caller = *found;
  const struct pyro_unwind_rule *rule = &walk->caller;
  const bool hand_written = rule->kind == PYRO_RULE_NONE;
  if (hand_written && (!pyro_is_direct_call(code) ||
                       cursor->pc - pyro_call_target(code, address) >= PYRO_LONGEST_FUNCTION))
    return PYRO_CANDIDATE_NONE;

  const __u64 pc = cursor->pc;
  const __u64 sp = cursor->sp;
  const __u64 fp = cursor->fp;
  const __u8 rbx_known = cursor->rbx_known;
  const __u8 has_registers = cursor->has_registers;
  cursor->pc = address - 1;
  cursor->sp = slot + sizeof(__u64);
  cursor->has_registers = 0;
  cursor->has_callee_registers = 0;
  cursor->rbx_known = 0;
  cursor->if_nowhere = PYRO_END_BAD_RETURN_ADDRESS;
  cursor->hand_written = hand_written;
  if (hand_written || pyro_leads_on(walk, rule)) return PYRO_CANDIDATE_TAKEN;
  /* The caller needs its frame pointer, which the function pushed first. */
  if (slot > sp && rule->cfa_register == PYRO_REGISTER_FP &&
      pyro_read_word(walk, slot - sizeof(__u64), &cursor->fp) && pyro_leads_on(walk, rule))
    return PYRO_CANDIDATE_TAKEN;
  cursor->pc = pc;
  cursor->sp = sp;
  cursor->fp = fp;
  cursor->has_registers = has_registers;
  cursor->hand_written = !has_registers;
  cursor->rbx_known = rbx_known;
  return PYRO_CANDIDATE_UNSURE;
}

#endif
