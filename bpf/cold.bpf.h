/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples that cannot be unwound here are shipped to user space, as registers and stack bytes.
 */
#ifndef PYROMETER_COLD_BPF_H
#define PYROMETER_COLD_BPF_H

#include "maps.bpf.h"
#include "registers.bpf.h"
#include "unwinder.bpf.h"

/* Limits per second, CPU and kind of event: in total, and for one process (by a hash of its pid);
 * set at load. */
const volatile __u32 cold_per_second = 0;
const volatile __u32 cold_per_second_of_process = 0;

/* Unread bytes at which the reader of samples is woken; set at load. */
const volatile __u32 cold_wakeup_bytes = 0;

/* Counts by enum pyro_cold_reason, of samples that were unwound but found no room in a window map,
 * and of samples refused; read by user space. */
__u64 cold_shipped[PYRO_COLD_REASONS] = {};
__u64 cold_unwound = 0;
__u64 cold_refused = 0;

/* Counts another cold sample of the key's process if the limits allow it. A second is 2^30 ns here.
 */
static __always_inline bool pyro_may_ship(const struct pyro_sample_key *key, __u64 now_ns)
{
  const __u32 event = key->event;
  struct pyro_cold_rates *rates = bpf_map_lookup_elem(&cold_rates, &event);
  if (!rates) return false;
  const __u64 second = now_ns >> 30;
  if (rates->second != second) {
    rates->second = second;
    rates->total = 0;
  }
  const __u32 slot = (key->pid ^ (key->pid >> 8)) & (PYRO_COLD_COUNTERS - 1);
  if (rates->by_process[slot].second != (__u32)second) {
    rates->by_process[slot].second = (__u32)second;
    rates->by_process[slot].count = 0;
  }
  if (rates->total >= cold_per_second) return false;
  if (rates->by_process[slot].count >= cold_per_second_of_process) return false;
  rates->total++;
  rates->by_process[slot].count++;
  return true;
}

static __always_inline __u64 pyro_cold_flags(__u64 waiting)
{
  return waiting < cold_wakeup_bytes ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}

/* Ships a sample that is unwound and has no room in a window map. False if the ring is full too. */
static __always_inline bool pyro_ship_unwound(struct pyro_walk *walk)
{
  const __u32 frames = walk->frames;
  if (frames > PYRO_STACK_LARGE) return false;
  const __u32 size = __builtin_offsetof(struct pyro_unwound_sample, stack.frames) +
                     frames * (__u32)sizeof(walk->stack.frames[0]);
  walk->key.stack_class = PYRO_COLD_UNWOUND;
  walk->time_ns = bpf_ktime_get_ns();
  const __u64 flags = pyro_cold_flags(bpf_ringbuf_query(&cold_samples, BPF_RB_AVAIL_DATA));
  if (bpf_ringbuf_output(&cold_samples, walk, size, flags)) return false;
  __sync_fetch_and_add(&cold_unwound, 1);
  return true;
}

/* Reads the stack from `sp` upwards, page by page; a page that cannot be read is left out, as
 * zeros. Returns the number of bytes up to the last that was read. */
static __always_inline __u32 pyro_copy_stack(struct pyro_cold_buffer *buffer, __u64 sp)
{
  __u32 size = 0;
  __u32 read = 0;
  __u32 holes = 0;
  for (int piece = 0; piece <= PYRO_COLD_STACK_BYTES / PYRO_COLD_PIECE; ++piece) {
    const __u32 at = size & (PYRO_COLD_STACK_BYTES - 1);
    const __u64 from = sp + size;
    const __u32 rest = PYRO_COLD_PIECE - (__u32)(from & (PYRO_COLD_PIECE - 1));
    if (size >= PYRO_COLD_STACK_BYTES || !rest || rest > PYRO_COLD_PIECE) break;
    size += rest;
    if (bpf_probe_read_user(buffer->stack + at, rest, (const void *)from))
      holes |= 1U << piece;
    else
      read = size;
  }
  buffer->sample.stack_holes = holes;
  return read > PYRO_COLD_STACK_BYTES ? PYRO_COLD_STACK_BYTES : read;
}

/* Ships the sample of `walk`, whose kernel frames are in its stack. False if a limit was reached or
 * there was no room. */
static __always_inline bool pyro_ship(struct bpf_perf_event_data *ctx, struct pyro_walk *walk,
                                      __u32 reason)
{
  const __u32 own = bpf_get_smp_processor_id() * PYRO_EVENT_KINDS + walk->key.event;
  struct pyro_cold_buffer *buffer = bpf_map_lookup_elem(&cold_buffers, &own);
  if (!buffer) return false;
  struct pyro_cold_sample *sample = &buffer->sample;
  struct pyro_interrupted interrupted;

  sample->time_ns = bpf_ktime_get_ns();
  if (!pyro_may_ship(&walk->key, sample->time_ns)) return false;
  if (!pyro_user_registers(ctx, sample->registers, &interrupted)) return false;
  sample->key = walk->key;
  sample->key.stack_class = PYRO_COLD_TO_UNWIND;
  sample->pc = interrupted.pc;
  sample->after_call = interrupted.after_call;
  sample->reason = reason;
  sample->exec_pages = walk->exec_pages;
  sample->kernel_frames = walk->stack.head.kernel_frames;
  __builtin_memcpy(sample->kernel_stack, walk->stack.frames, sizeof(sample->kernel_stack));
  __u32 size = pyro_copy_stack(buffer, sample->registers[PYRO_REGISTER_SP]);
  sample->stack_bytes = size;
  if (size > PYRO_COLD_STACK_BYTES) size = PYRO_COLD_STACK_BYTES;
  const __u64 waiting = bpf_ringbuf_query(&cold_samples, BPF_RB_AVAIL_DATA);
  return bpf_ringbuf_output(&cold_samples, buffer, sizeof(*sample) + size,
                            pyro_cold_flags(waiting)) == 0;
}

#endif
