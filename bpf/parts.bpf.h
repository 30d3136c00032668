/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a tick, each marked at its end by PYRO_PART. The marks are nothing here: the bench
 * compiles the same program with a clock in them (tick_anatomy.bpf.c).
 */
#ifndef PYROMETER_PARTS_BPF_H
#define PYROMETER_PARTS_BPF_H

enum pyro_part {
  PYRO_PART_NONE,  /* the tick begins */
  PYRO_PART_ENTRY, /* who is running, and is it wanted */
  PYRO_PART_KERNEL_STACK,
  PYRO_PART_REGISTERS, /* those of user mode */
  PYRO_PART_PROCESS,   /* what is known of the process */
  PYRO_PART_MAPPING,   /* for each frame: the mapping of its pc, */
  PYRO_PART_PAGE,      /* the page of its object's table, */
  PYRO_PART_ROWS,      /* the row in there, */
  PYRO_PART_STEP,      /* and its rule, applied, with what that reads of the stack */
  PYRO_PART_STORE,     /* the sample, in a journal; or the stack, in its map, */
  PYRO_PART_COUNT,     /* and the count */
  PYRO_PARTS
};

#ifndef PYRO_PART
#define PYRO_PART(part) ((void)0)
#endif

#endif
