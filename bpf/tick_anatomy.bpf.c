/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampler with a clock in the marks between its parts (bpf/parts.bpf.h).
 */
#include "types.bpf.h"

#include "tick_parts.h"

/* The parts of the ticks of each CPU. Written by the program, read at the end. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tick_parts);
} parts SEC(".maps");

/* `part` ends; what follows is another's. The clock's own time is in the parts, evenly. */
static __always_inline void end_part(__u32 part)
{
  const __u32 zero = 0;
  struct tick_parts *all = bpf_map_lookup_elem(&parts, &zero);
  if (!all) return;
  const __u64 now = bpf_ktime_get_ns();
  if (part != PYRO_PART_NONE) all->ns[part] += now - all->last;
  all->count[part]++;
  all->last = now;
}

static __always_inline void mark(__u32 part)
{
  end_part(part);
  if (part != PYRO_PART_COUNT) return;
  /* By now the clock is in the caches, as it is for most marks. */
  for (int i = 0; i < 8; ++i) end_part(TICK_PART_MARK);
}

#undef PYRO_PART
#define PYRO_PART(part) mark(part)

#include "sampler.bpf.c"
