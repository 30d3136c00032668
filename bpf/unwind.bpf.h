/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinds the user stack in the kernel: what the unwinder (unwinder.bpf.h) reads and looks up here,
 * and the loop around it.
 */
#ifndef PYROMETER_UNWIND_BPF_H
#define PYROMETER_UNWIND_BPF_H

#include "maps.bpf.h"
#include "parts.bpf.h"
#include "registers.bpf.h"
#include "unwinder.bpf.h"

/* Steps of a binary search over PYRO_POOL_PART mappings and PYRO_CHUNK_ROWS rows. */
#define PYRO_MAPPING_SEARCH_STEPS 16
#define PYRO_ROW_SEARCH_STEPS 16

/* Another number whenever rows or rules of tables have been taken away, or marks of their use. What
 * was looked up before is looked up again then. Written by user space, after the tables and before
 * what was taken is used for anything else. The CPU may load a table before this: when the place of
 * a table has rested, and before another object gets it, the number changes once more. */
volatile __u32 table_generation = 0;

static __always_inline __u64 pyro_mix(__u64 hash, __u64 value)
{
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

static __always_inline long pyro_read_user(struct pyro_walk *walk, void *out, __u32 size,
                                           __u64 address)
{
  (void)walk;
  return bpf_probe_read_user(out, size, (const void *)address);
}

static __always_inline long pyro_read_code(struct pyro_walk *walk, void *out, __u32 size,
                                           __u64 address)
{
  return pyro_read_user(walk, out, size, address);
}

/* The part of the pool that this mapping lies in. */
static __always_inline struct pyro_mapping_pool *pyro_pool_part(__u32 index)
{
  const __u32 part = index >> PYRO_POOL_PART_SHIFT;
  return bpf_map_lookup_elem(&mapping_pool, &part);
}

static __always_inline struct pyro_mapping *pyro_mapping_at(struct pyro_mapping_pool *pool,
                                                            __u32 index)
{
  return &pool->mappings[index & (PYRO_POOL_PART - 1)];
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

/* Number of the rule for `pc_low` in a page: that of the last row that starts at or below it. */
static __always_inline __u32 pyro_search_rows(const struct pyro_unwind_chunk *chunk,
                                              const struct pyro_table_page *page, __u32 pc_low)
{
  __u32 base = page->first;
  __u32 count = page->count;
  for (int step = 0; step < PYRO_ROW_SEARCH_STEPS && count > 1; ++step) {
    const __u32 half = count >> 1;
    base += half & -(__u32)(chunk->rows[(base + half) & (PYRO_CHUNK_ROWS - 1)].pc_low <= pc_low);
    count -= half;
  }
  return chunk->rows[base & (PYRO_CHUNK_ROWS - 1)].rule;
}

/* Searches table number `index` for the rule for an ELF address. PYRO_PLACE_UNKNOWN if it is not
 * loaded; no rule for code that has frame pointers. */
static __always_inline int pyro_search_table(__u32 index, __u64 address,
                                             const struct pyro_unwind_rule **rule)
{
  const __u32 zero = 0;
  struct pyro_object_tables *tables = bpf_map_lookup_elem(&object_tables, &zero);
  struct pyro_table_pages *pages = bpf_map_lookup_elem(&table_pages, &zero);
  struct pyro_unwind_rules *rules = bpf_map_lookup_elem(&unwind_rules, &zero);
  if (!tables || !pages || !rules) return PYRO_PLACE_UNKNOWN;

  const struct pyro_object_table *table = &tables->tables[index & (PYRO_MAX_TABLES - 1)];
  const __u32 state = table->state;
  if (state == PYRO_TABLE_ABSENT) return PYRO_PLACE_UNKNOWN;
  if (state == PYRO_TABLE_EMPTY) return PYRO_PLACE_OBJECT;
  if (state == PYRO_TABLE_UNREAD) return PYRO_PLACE_UNREAD;
  const struct pyro_unwind_rule *none =
      state == PYRO_TABLE_SPARSE ? 0 : &rules->rules[PYRO_RULE_INDEX_NONE];
  *rule = none;
  const __u64 number = (address >> PYRO_UNWIND_PAGE_SHIFT) - table->first_text_page;
  if (number >= table->page_count) return PYRO_PLACE_OBJECT;
  struct pyro_table_page *entry =
      &pages->pages[(table->first_page + (__u32)number) & (PYRO_MAX_TABLE_PAGES - 1)];
  struct pyro_table_page page;
  const __u64 bits = *(const volatile __u64 *)entry;
  __builtin_memcpy(&page, &bits, sizeof(page));
  if (!page.count) return PYRO_PLACE_OBJECT;
  if (!page.used) entry->used = 1;
  if (page.chunk == PYRO_PAGE_EVICTED) return PYRO_PLACE_UNKNOWN;
  const __u32 slot = page.chunk;
  void *chunk_map = bpf_map_lookup_elem(&chunks, &slot);
  if (!chunk_map) return PYRO_PLACE_UNKNOWN;
  struct pyro_unwind_chunk *chunk = bpf_map_lookup_elem(chunk_map, &zero);
  if (!chunk) return PYRO_PLACE_UNKNOWN;
  PYRO_PART(PYRO_PART_PAGE);
  const __u32 number_of_rule = pyro_search_rows(chunk, &page, (__u32)address & 0xffff);
  PYRO_PART(PYRO_PART_ROWS);
  if (number_of_rule != PYRO_RULE_INDEX_NONE)
    *rule = &rules->rules[number_of_rule & (PYRO_MAX_RULES - 1)];
  return PYRO_PLACE_OBJECT;
}

/* Which place an ELF address in table number `index` is, never 0; 0 if it has no number. */
static __always_inline __u64 pyro_place_key(__u32 index, __u64 address)
{
  if (address >> PYRO_FRAME_OFFSET_BITS) return 0;
  return (__u64)(index + 1) << PYRO_FRAME_OFFSET_BITS | address;
}

/* As pyro_search_table, for addresses that were looked up before. `*rule` holds until the next
 * look-up. */
static __always_inline int pyro_find_in_table(struct pyro_walk *walk, __u32 index, __u64 address,
                                              const struct pyro_unwind_rule **rule)
{
  const __u64 place = pyro_place_key(index, address);
  const __u32 generation = table_generation;
  struct pyro_known_rule *known =
      &walk->known[(place * 0x9e3779b97f4a7c15ULL) >> (64 - PYRO_KNOWN_RULE_BITS)];
  if (known->place != place || known->generation != generation || !place) {
    const struct pyro_unwind_rule *found = 0;
    const int result = pyro_search_table(index, address, &found);
    if (result != PYRO_PLACE_OBJECT || !found) return result;
    known->rule = *found;
    known->place = place;
    known->generation = generation;
  }
  *rule = &known->rule;
  return PYRO_PLACE_OBJECT;
}

/* For an address whose content is unknown: its frame stays an address, and there is only the frame
 * pointer to follow. */
static __always_inline int pyro_unknown_place(const struct pyro_walk *walk)
{
  return walk->stay ? PYRO_PLACE_OBJECT : PYRO_PLACE_UNKNOWN;
}

/* Also normalizes the frame into walk->frame: an object frame if the mapping is known and the
 * address fits. */
static __always_inline int pyro_find_rule(struct pyro_walk *walk, __u64 pc,
                                          const struct pyro_unwind_rule **rule)
{
  struct pyro_mapping_pool *pool = pyro_pool_part(walk->first_mapping);

  walk->frame = pc;
  if (!pool || !walk->mapping_count) return pyro_unknown_place(walk);
  /* Consecutive frames mostly lie in the same mapping. */
  struct pyro_mapping *mapping = pyro_mapping_at(pool, walk->last_mapping);
  if (pc < mapping->start || pc >= mapping->end) mapping = pyro_search_mapping(pool, walk, pc);
  if (pc < mapping->start || pc >= mapping->end)
    return walk->drifted ? pyro_unknown_place(walk) : PYRO_PLACE_NOWHERE;
  if (mapping->table & PYRO_MAPPING_SHIFTING) return pyro_unknown_place(walk);
  if (!mapping->object) return PYRO_PLACE_ANONYMOUS;
  PYRO_PART(PYRO_PART_MAPPING);
  const __u64 address = pc - mapping->bias;
  if (!(address >> PYRO_FRAME_OFFSET_BITS))
    walk->frame = PYRO_OBJECT_FRAME((__u64)mapping->object, address);
  const int place = pyro_find_in_table(walk, mapping->table, address, rule);
  return place == PYRO_PLACE_UNKNOWN ? pyro_unknown_place(walk) : place;
}

static __always_inline void pyro_push_frame(struct pyro_walk *walk)
{
  const __u32 at = walk->frames;
  if (at >= PYRO_STACK_LARGE) return;
  walk->stack.frames[at] = walk->frame;
  walk->hash = pyro_mix(walk->hash, walk->frame);
  walk->frames = at + 1;
  walk->user_frames++;
}

/* Several frames per call share its lookups; more frames mean more work for the verifier. */
#define PYRO_FRAMES_PER_CALL 4

/* Walks PYRO_FRAMES_PER_CALL frames on, for one of the programs. Returns what the last
 * pyro_step did.
 *
 * A global function: the verifier looks at it once, by itself (since 5.6). It would follow a
 * static one again in every iteration of the loop around it, and 512 frames have more branches
 * than the 8192 it keeps in mind. bpf_loop (5.17) is no faster (500 frames: 17.4 us, against
 * 17.1), and a program that names its callback does not load before 5.13. Until 5.12 a global
 * function can be given nothing but numbers, so this one looks up what it works on. */
__attribute__((noinline)) int pyro_walk_some(__u32 program)
{
  struct pyro_walk *walk = bpf_map_lookup_elem(&walks, &program);

  if (!walk) return PYRO_END_NO_REGISTERS;
  for (int i = 0; i < PYRO_FRAMES_PER_CALL; ++i) {
    const int end = pyro_step(walk);
    PYRO_PART(PYRO_PART_STEP);
    if (end != PYRO_WALK_ON) return end;
  }
  return PYRO_WALK_ON;
}

/* Tries word `index` of the walk's window as the return address of the cursor's frame; a global
 * function for the same reason. Returns enum pyro_candidate. */
__attribute__((noinline)) int pyro_try_word(__u32 program, __u32 index)
{
  struct pyro_walk *walk = bpf_map_lookup_elem(&walks, &program);

  if (!walk) return PYRO_CANDIDATE_UNSURE;
  index &= PYRO_STACK_WINDOW - 1;
  const __u64 word = walk->window[index];
  /* Most words are not code addresses. */
  if (word < walk->lowest_code || word >= walk->highest_code) return PYRO_CANDIDATE_NONE;
  return pyro_try_caller(walk, walk->window_start + index * sizeof(__u64), word);
}

PYRO_STATIC_ASSERT(PYRO_SCAN_WORDS <= PYRO_STACK_WINDOW, "the window holds all words to try");

/* Searches for the caller of hand-written code, and moves the cursor there. */
static __always_inline bool pyro_find_caller(struct pyro_walk *walk)
{
  walk->window_start = walk->cursor.sp;
  if (pyro_read_user(walk, walk->window, sizeof(walk->window), walk->window_start)) {
    walk->window_start = PYRO_NO_WINDOW;
    return false;
  }
  for (__u32 i = 0; i < PYRO_SCAN_WORDS; ++i) {
    const int candidate = pyro_try_word(walk->program, i);
    if (candidate != PYRO_CANDIDATE_NONE) return candidate == PYRO_CANDIDATE_TAKEN;
  }
  return false;
}

/* Walks the user stack from the cursor of the program's walk. Returns enum pyro_stack_end or, if it
 * cannot go on, PYRO_WALK_UNKNOWN, PYRO_WALK_EXOTIC or PYRO_WALK_HAND_WRITTEN. */
static __always_inline int pyro_walk_user(__u32 program)
{
  for (int frames = 0; frames <= PYRO_MAX_USER_FRAMES; frames += PYRO_FRAMES_PER_CALL) {
    const int end = pyro_walk_some(program);
    if (end != PYRO_WALK_ON) return end;
  }
  return PYRO_END_TRUNCATED;
}

/* Puts the cursor at the interrupted instruction. Returns PYRO_WALK_ON, or enum pyro_stack_end if
 * there is none. */
static __always_inline int pyro_start_walk(struct bpf_perf_event_data *ctx, struct pyro_walk *walk)
{
  struct pyro_cursor *cursor = &walk->cursor;
  struct pyro_interrupted interrupted;
  if (!pyro_user_registers(ctx, cursor->registers, &interrupted)) return PYRO_END_NO_REGISTERS;
  /* A thread that the kernel has started in a process (io_uring since 5.12, vhost since 6.4) shares
   * its memory and is not PF_KTHREAD; but it never was in user mode, and copy_thread() leaves it
   * these two. */
  if (!interrupted.pc && !cursor->registers[PYRO_REGISTER_SP]) return PYRO_END_NO_USER_STACK;
  pyro_start(cursor, interrupted.pc, interrupted.after_call);
  walk->window_start = PYRO_NO_WINDOW;
  return PYRO_WALK_ON;
}

#endif
