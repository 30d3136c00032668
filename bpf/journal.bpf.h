/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The journals: where samples go first, one behind the other. Such a sample touches three cache
 * lines of one page or two. An entry in each of two hash maps touches a dozen, in as many pages,
 * and at 99 Hz none of them is in the caches. User space puts equal samples together.
 */
#ifndef PYROMETER_JOURNAL_BPF_H
#define PYROMETER_JOURNAL_BPF_H

#include "maps.bpf.h"

/* Bytes of a journal; set at load, at least PYRO_JOURNAL_MIN_BYTES. */
const volatile __u32 journal_bytes = PYRO_JOURNAL_MIN_BYTES;

/* By half: another number for each window. Written by user space before the half becomes active. */
volatile __u32 journal_window[2] = {};

PYRO_STATIC_ASSERT(__builtin_offsetof(struct pyro_walk, time_ns) ==
                           __builtin_offsetof(struct pyro_journal_record, time_ns) &&
                       __builtin_offsetof(struct pyro_walk, stack) ==
                           __builtin_offsetof(struct pyro_journal_record, stack),
                   "a walk begins as a record of a journal");

/* Writes the walk's sample to the journal of this CPU. False if it has no room, or the stack is too
 * deep for one. */
static __always_inline bool pyro_write_journal(struct pyro_walk *walk)
{
  const __u32 half = walk->half & 1;
  const __u32 number = (bpf_get_smp_processor_id() * PYRO_PROGRAMS + walk->program) * 2 + half;
  const __u32 frames = walk->frames;
  if (frames > PYRO_STACK_MEDIUM) return false;
  char *journal = bpf_map_lookup_elem(&journals, &number);
  if (!journal) return false;
  struct pyro_journal_end *end = &walk->journal_end[half];
  const __u32 window = journal_window[half];
  const __u32 at = end->window == window ? end->bytes : 0;
  if (at > journal_bytes - PYRO_JOURNAL_MIN_BYTES) return false;
  const __u32 size = PYRO_JOURNAL_HEAD + frames * (__u32)sizeof(walk->stack.frames[0]);
  walk->time_ns = bpf_ktime_get_ns();
  if (bpf_probe_read_kernel(journal + at, size, walk)) return false;
  /* The next record, which has not been written yet. */
  ((struct pyro_journal_record *)(journal + at + size))->time_ns = 0;
  end->window = window;
  end->bytes = at + size;
  return true;
}

#endif
