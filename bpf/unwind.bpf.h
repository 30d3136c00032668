/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack: a walk along the frame pointers, each step validated, each frame normalized
 * through the process's mappings where they are known.
 */
#ifndef PYROMETER_UNWIND_BPF_H
#define PYROMETER_UNWIND_BPF_H

#include "maps.bpf.h"
#include "registers.bpf.h"

/* No single frame is larger than that; a frame pointer further up is taken for garbage. */
#define PYRO_MAX_FRAME_SIZE (8ULL << 20)
/* The lowest address that the kernel lets anyone map by default (vm.mmap_min_addr). */
#define PYRO_MIN_USER_ADDRESS 4096ULL
/* Five levels of page tables: 2^56; nothing of user space lies above. */
#define PYRO_MAX_USER_ADDRESS (1ULL << 56)
/* Steps of a search over PYRO_MAPPING_POOL entries. */
#define PYRO_MAPPING_SEARCH_STEPS 16

/* No address is that high, so nothing lies in a window that starts there. */
#define PYRO_NO_WINDOW (1ULL << 63)

/* What a function with a frame pointer leaves at it, on x86_64 and arm64 alike. */
struct pyro_saved {
  __u64 fp;
  __u64 ra;
};

static __always_inline __u64 pyro_mix(__u64 hash, __u64 value)
{
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

static __always_inline struct pyro_mapping *pyro_mapping_at(struct pyro_mapping_pool *pool,
                                                            __u32 index)
{
  return &pool->mappings[index & (PYRO_MAPPING_POOL - 1)];
}

/* The last of the walk's mappings that starts at or below `pc`. */
static __always_inline struct pyro_mapping *pyro_search_mapping(struct pyro_mapping_pool *pool,
                                                                struct pyro_walk *walk, __u64 pc)
{
  __u32 base = walk->first_mapping;
  __u32 count = walk->mapping_count;
  for (int step = 0; step < PYRO_MAPPING_SEARCH_STEPS && count > 1; ++step) {
    const __u32 half = count >> 1;
    /* No branch on what was found: one path for the verifier, none to mispredict. */
    base += half & -(__u32)(pyro_mapping_at(pool, base + half)->start <= pc);
    count -= half;
  }
  walk->last_mapping = base;
  return pyro_mapping_at(pool, base);
}

/* The frame for `pc`: an object frame if its mapping is known, else the address itself. */
static __always_inline __u64 pyro_normalize(struct pyro_mapping_pool *pool, struct pyro_walk *walk,
                                            __u64 pc)
{
  if (!walk->mapping_count) return pc;
  /* Consecutive frames mostly lie in the same mapping. */
  struct pyro_mapping *mapping = pyro_mapping_at(pool, walk->last_mapping);
  if (pc < mapping->start || pc >= mapping->end) mapping = pyro_search_mapping(pool, walk, pc);
  if (pc < mapping->start || pc >= mapping->end || !mapping->object) return pc;
  return PYRO_OBJECT_FRAME((__u64)mapping->object, pc - mapping->bias);
}

static __always_inline void pyro_push(struct pyro_walk *walk, __u64 frame)
{
  const __u32 at = walk->frames;
  if (at >= PYRO_STACK_LARGE) return;
  walk->stack.frames[at] = frame;
  walk->hash = pyro_mix(walk->hash, frame);
  walk->frames = at + 1;
}

/* Reads {saved frame pointer, return address} at `fp`, which is aligned.
 *
 * A helper call costs about 50 ns and much the same for 16 bytes as for 256, and stacks are read
 * upwards: so a window of the stack is read at a time and the next frames mostly come out of it. */
static __always_inline bool pyro_read_frame(struct pyro_walk *walk, __u64 fp,
                                            struct pyro_saved *out)
{
  __u64 at = fp - walk->window_start;
  if (at > sizeof(walk->window) - sizeof(*out)) {
    walk->window_start = fp;
    at = 0;
    if (bpf_probe_read_user(walk->window, sizeof(walk->window), (void *)fp)) {
      /* The end of the stack may be near. */
      walk->window_start = PYRO_NO_WINDOW;
      return bpf_probe_read_user(out, sizeof(*out), (void *)fp) == 0;
    }
  }
  out->fp = walk->window[(at >> 3) & (PYRO_STACK_WINDOW - 1)];
  out->ra = walk->window[((at >> 3) + 1) & (PYRO_STACK_WINDOW - 1)];
  return true;
}

/* One step towards the root. Returns enum pyro_stack_end if it was the last one, else -1.
 *
 * A frame is {saved frame pointer, return address} on both x86_64 and arm64. The chain ends with
 * a null in either; a frame pointer must be aligned and lie above the last frame, on the stack. */
static __always_inline int pyro_step_frame_pointer(struct pyro_mapping_pool *pool,
                                                   struct pyro_walk *walk)
{
  struct pyro_saved saved;
  const __u64 fp = walk->fp;

  if (!fp) return PYRO_END_COMPLETE;
  if ((fp & 7) || fp < walk->sp || fp - walk->sp > PYRO_MAX_FRAME_SIZE)
    return PYRO_END_BAD_FRAME_POINTER;
  if (walk->user_frames >= PYRO_MAX_USER_FRAMES) return PYRO_END_TRUNCATED;
  if (!pyro_read_frame(walk, fp, &saved)) return PYRO_END_UNREADABLE;
  if (!saved.ra) return PYRO_END_COMPLETE;
#if defined(__TARGET_ARCH_arm64)
  /* Pointer authentication codes live above the 48 bits of a user address. */
  saved.ra &= (1ULL << 48) - 1;
#endif
  if (saved.ra < PYRO_MIN_USER_ADDRESS || saved.ra >= PYRO_MAX_USER_ADDRESS)
    return PYRO_END_BAD_RETURN_ADDRESS;
  /* The address to look up is that of the call, not of what follows it. */
  pyro_push(walk, pyro_normalize(pool, walk, saved.ra - 1));
  walk->user_frames++;
  walk->sp = fp + sizeof(saved);
  walk->fp = saved.fp;
  return -1;
}

/* Several frames per call share its lookups. The more, the more the verifier has to follow (on 5.10
 * 13,000 instructions for 1, 16,000 for 4, 34,000 for 8, 117,000 for 16); beyond 4 nothing is
 * gained. */
#define PYRO_FRAMES_PER_CALL 4

/* Walks PYRO_FRAMES_PER_CALL frames on. Returns enum pyro_stack_end if the stack ended, else -1.
 *
 * A global function: the verifier looks at it once, by itself (since 5.6). It would follow a
 * static one again in every iteration of the loop around it, and 512 frames have more branches
 * than the 8192 it keeps in mind. bpf_loop (5.17) is no faster (500 frames: 17.4 us, against
 * 17.1), and a program that names its callback does not load before 5.13. Until 5.12 a global
 * function can be given nothing but numbers, so this one looks up what it works on. */
__attribute__((noinline)) int pyro_walk_some(void)
{
  const __u32 zero = 0;
  struct pyro_walk *walk = bpf_map_lookup_elem(&walks, &zero);
  struct pyro_mapping_pool *pool = bpf_map_lookup_elem(&mapping_pool, &zero);

  if (!walk || !pool) return PYRO_END_NO_REGISTERS;
  for (int i = 0; i < PYRO_FRAMES_PER_CALL; ++i) {
    const int end = pyro_step_frame_pointer(pool, walk);
    if (end >= 0) return end;
  }
  return -1;
}

/* Walks the whole user stack, from where `walks` stands, and returns enum pyro_stack_end. */
static __always_inline int pyro_walk_user(void)
{
  for (int frames = 0; frames <= PYRO_MAX_USER_FRAMES; frames += PYRO_FRAMES_PER_CALL) {
    const int end = pyro_walk_some();
    if (end >= 0) return end;
  }
  return PYRO_END_TRUNCATED;
}

#endif
