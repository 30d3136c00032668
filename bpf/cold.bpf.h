/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples that cannot be unwound here are shipped to user space, as registers and stack bytes.
 */
#ifndef PYROMETER_COLD_BPF_H
#define PYROMETER_COLD_BPF_H

#include "maps.bpf.h"
#include "registers.bpf.h"
#include "unwinder.bpf.h"

/* Limits per second, set at load: of the machine, and of one process (by a hash of its pid). */
const volatile __u32 cold_per_second = 0;
const volatile __u32 cold_per_second_of_process = 0;
/* Bytes of the ring; set at load. */
const volatile __u32 cold_ring_bytes = 0;

/* Unread bytes at which the reader of samples is woken; set at load. */
const volatile __u32 cold_wakeup_bytes = 0;

/* Counts by enum pyro_cold_reason, of samples that were unwound but found no room in a window map,
 * and of samples refused; read by user space. */
__u64 cold_shipped[PYRO_COLD_REASONS] = {};
__u64 cold_unwound = 0;
__u64 cold_refused = 0;

/* The most that a sample takes in the ring, with the ring's own eight bytes. */
#define PYRO_COLD_MOST_BYTES (sizeof(struct pyro_cold_sample) + PYRO_COLD_STACK_BYTES + 8)

/* How many samples this second has had by now. A second is 2^30 ns here. Where CPUs meet at its
 * beginning some are not counted. */
static __always_inline __u32 pyro_count_of(struct pyro_cold_count *count, __u32 second)
{
  if (count->second == second) return count->count;
  count->second = second;
  count->count = 0;
  return 0;
}

/* Whether the limits allow another cold sample of the key's process now, with `room` in the ring;
 * counts it if so.
 *
 * A user may take three quarters of the machine's limit. A process that has had little in this
 * second, a 32nd of the limit, gets in all the same, up to twice these; and the last quarter of the
 * ring is for such ones: nobody's endless load keeps others out. */
static __always_inline bool pyro_may_ship(const struct pyro_sample_key *key, __u64 now_ns,
                                          __u64 room)
{
  const __u32 zero = 0;
  struct pyro_cold_rates *rates = bpf_map_lookup_elem(&cold_rates, &zero);
  if (!rates) return false;
  const __u32 uid = (__u32)bpf_get_current_uid_gid();
  const __u32 second = now_ns >> 30;
  struct pyro_cold_count *process =
      &rates->by_process[(key->pid ^ (key->pid >> 10)) & (PYRO_COLD_PROCESSES - 1)];
  struct pyro_cold_count *user = &rates->by_user[(uid ^ (uid >> 8)) & (PYRO_COLD_USERS - 1)];
  const __u32 limit = cold_per_second;
  const __u32 of_process = pyro_count_of(process, second);
  const bool modest = of_process < limit / 32;
  const __u32 times = modest ? 2 : 1;

  if (of_process >= cold_per_second_of_process) return false;
  if (pyro_count_of(&rates->total, second) >= limit * times) return false;
  if (pyro_count_of(user, second) >= (limit - limit / 4) * times) return false;
  if (room < PYRO_COLD_MOST_BYTES + (modest ? 0 : cold_ring_bytes / 4)) return false;
  __sync_fetch_and_add(&rates->total.count, 1);
  __sync_fetch_and_add(&process->count, 1);
  __sync_fetch_and_add(&user->count, 1);
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
  const __u32 own = bpf_get_smp_processor_id() * PYRO_PROGRAMS + walk->program;
  struct pyro_cold_buffer *buffer = bpf_map_lookup_elem(&cold_buffers, &own);
  if (!buffer) return false;
  struct pyro_cold_sample *sample = &buffer->sample;
  struct pyro_interrupted interrupted;

  /* Asked for before the stack is copied. */
  const __u64 waiting = bpf_ringbuf_query(&cold_samples, BPF_RB_AVAIL_DATA);
  const __u64 room = cold_ring_bytes - (waiting < cold_ring_bytes ? waiting : cold_ring_bytes);
  sample->time_ns = bpf_ktime_get_ns();
  if (!pyro_may_ship(&walk->key, sample->time_ns, room)) return false;
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
  return bpf_ringbuf_output(&cold_samples, buffer, sizeof(*sample) + size,
                            pyro_cold_flags(waiting)) == 0;
}

#endif
