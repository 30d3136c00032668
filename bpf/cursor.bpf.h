/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwinder's position.
 */
#ifndef PYROMETER_CURSOR_BPF_H
#define PYROMETER_CURSOR_BPF_H

#include "pyrometer/abi/sampler.h"

/* Words of the user stack that are read at a time. */
#define PYRO_STACK_WINDOW 128

/* One frame: the registers, as far as known, when it was interrupted or made its call. */
struct pyro_cursor {
  __u64 pc; /* to look up: interrupted pc, or the return address minus one */
  __u64 sp;
  __u64 fp;
  __u64 rbx;
  __u64 registers[PYRO_REGISTERS]; /* of the leaf, or of what a signal interrupted */
  __u8 has_registers;              /* nothing has been called from here: `registers` are valid */
  __u8 fp_known;
  __u8 rbx_known;
  __u8 if_nowhere;           /* enum pyro_stack_end, for a return address that leads nowhere */
  __u8 has_callee_registers; /* `registers` are those of the function called from here */
  __u8 hand_written;         /* a leaf's caller of its kind: without any rule, and no leaf */
  __u8 leaving; /* a function further in has PYRO_RULE_LEAVING: a null may be anything */
  __u8 unsure;  /* a step was at PYRO_PLACE_UNREAD: a caller may be missing */
};

#endif
