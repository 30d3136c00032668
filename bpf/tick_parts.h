/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by tick_anatomy.bpf.c and its user space.
 */
#ifndef PYROMETER_TICK_PARTS_H
#define PYROMETER_TICK_PARTS_H

#include <linux/types.h>

#include "parts.bpf.h"

/* Nothing but a mark: what is to be taken off each part. */
#define TICK_PART_MARK PYRO_PARTS
#define TICK_PARTS (PYRO_PARTS + 1)

struct tick_parts {
  __u64 last; /* when the last part ended */
  __u64 ns[TICK_PARTS];
  __u64 count[TICK_PARTS];
};

#endif
