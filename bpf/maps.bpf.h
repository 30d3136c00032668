/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All maps of the sampler: for each, who writes and reads it, its bound, and what happens when it
 * is full. User space sets the sizes marked "set at load".
 */
#ifndef PYROMETER_MAPS_BPF_H
#define PYROMETER_MAPS_BPF_H

#include "cursor.bpf.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/abi/unwind.h"
#include "types.bpf.h"

/* One half of a window: an inner map. Preallocated, because before 6.1 perf_event programs may
 * only use preallocated hash maps. */
#define PYRO_INNER_HASH(name, key_type, value_type) \
  struct name {                                     \
    __uint(type, BPF_MAP_TYPE_HASH);                \
    __uint(max_entries, 1);                         \
    __type(key, key_type);                          \
    __type(value, value_type);                      \
  }

PYRO_INNER_HASH(pyro_counts_map, struct pyro_sample_key, struct pyro_sample_count);
PYRO_INNER_HASH(pyro_small_map, __u64, struct pyro_stack_small);
PYRO_INNER_HASH(pyro_medium_map, __u64, struct pyro_stack_medium);
PYRO_INNER_HASH(pyro_large_map, __u64, struct pyro_stack_large);

/* Ticks that found no room in a journal, by sample key. Written by the sampling program, drained by
 * user space. Set at load; when full, the tick goes to user space through `cold_samples`; when that
 * is full too, it is lost as LOST_COUNT_MAP_FULL. */
struct pyro_counts_map counts_0 SEC(".maps"), counts_1 SEC(".maps");
/* Their stacks by hash, one map per size class. Written by the sampling program, drained by user
 * space. Set at load; when one is full, stacks go to the next larger class, and when that of the
 * largest is, to user space through `cold_samples`; only when that is full too, the tick is lost as
 * LOST_STACK_MAP_FULL. */
struct pyro_small_map small_0 SEC(".maps"), small_1 SEC(".maps");
struct pyro_medium_map medium_0 SEC(".maps"), medium_1 SEC(".maps");
struct pyro_large_map large_0 SEC(".maps"), large_1 SEC(".maps");

/* The two halves, by index; `active` says which one is written, of the journals as well. User space
 * drains the other.
 * Updating any of these outer maps waits (synchronize_rcu) for programs that still use the old
 * half, so no count is lost or seen twice. */
#define PYRO_OUTER(name, inner_type, half_0, half_1) \
  struct {                                           \
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);        \
    __uint(max_entries, 2);                          \
    __type(key, __u32);                              \
    __array(values, struct inner_type);              \
  } name SEC(".maps") = {.values = {&half_0, &half_1}}

PYRO_OUTER(counts_halves, pyro_counts_map, counts_0, counts_1);
PYRO_OUTER(small_halves, pyro_small_map, small_0, small_1);
PYRO_OUTER(medium_halves, pyro_medium_map, medium_0, medium_1);
PYRO_OUTER(large_halves, pyro_large_map, large_0, large_1);

/* The journals (journal.bpf.h), by CPU, program and half. Each is written by that program on that
 * CPU, and read and emptied by user space through mmap. Number and size are set at load; when one
 * is full, and on a CPU that has none, ticks go to the window maps. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 2);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, PYRO_JOURNAL_MIN_BYTES);
} journals SEC(".maps");

/* Runs by half of the window maps and outcome (enum pyro_outcome), per CPU, since load: those of a
 * half are the ticks of its windows. Written by the sampling program, read by user space; cannot
 * fill. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 2 * PYRO_OUTCOMES);
  __type(key, __u32);
  __type(value, __u64);
} outcomes SEC(".maps");

/* Nanoseconds that ticks took, but for those of idle CPUs, per CPU, since load: the program's own
 * time, without that of the interrupt around it. Written by the sampling program, read by user
 * space. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} tick_time SEC(".maps");

/* A rule that was looked up before, with its place: its content, so that a known frame of the walk
 * takes one cache line, where the search touches ten. */
struct pyro_known_rule {
  __u64 place;      /* pyro_place_key; 0: none */
  __u32 generation; /* of the tables, when it was looked up */
  __u32 pad;
  struct pyro_unwind_rule rule;
};

#define PYRO_KNOWN_RULE_BITS 9
#define PYRO_KNOWN_RULES (1 << PYRO_KNOWN_RULE_BITS)

/* Where the next record goes in a journal, if that is of this window. */
struct pyro_journal_end {
  __u32 window;
  __u32 bytes;
};

/* Scratch memory for assembling a stack: too large for the BPF stack, and keeping the walk's state
 * in a map value lets the verifier's loop states converge. Private to one run: one for each CPU
 * and, because one can interrupt another, each program (enum pyro_program). */
struct pyro_walk {
  /* The first three as in struct pyro_unwound_sample and pyro_journal_record. */
  struct pyro_sample_key key;
  __u64 time_ns;
  struct pyro_stack_large stack;
  __u64 window[PYRO_STACK_WINDOW]; /* a piece of the user stack */
  __u64 window_start;
  struct pyro_cursor cursor;
  __u64 frame;       /* of the cursor's pc, as pyro_find_rule normalized it */
  __u64 lowest_code; /* where the process's mappings begin and end */
  __u64 highest_code;
  __u64 hash;
  __u32 frames; /* in stack.frames so far, kernel and user */
  __u32 user_frames;
  __u32 first_mapping; /* of the process, in the mapping pool */
  __u32 mapping_count; /* 0: mappings unknown */
  __u32 last_mapping;  /* the one found last */
  __u32 exec_pages;    /* of the task now */
  __u32 drifted;       /* these are not those of the known mappings, but nearly */
  __u32 half;          /* of the window maps, that this sample goes to */
  __u32 program;       /* enum pyro_program */
  __u32 stay;          /* user space will not help: what is not known is walked by frame pointers */
  struct pyro_journal_end journal_end[2]; /* by half */
  struct pyro_unwind_rule caller;         /* the rule of one that is tried */
  struct pyro_known_rule
      known[PYRO_KNOWN_RULES]; /* by a hash of their places; the last one stays */
};

PYRO_STATIC_ASSERT(__builtin_offsetof(struct pyro_walk, time_ns) ==
                           __builtin_offsetof(struct pyro_unwound_sample, time_ns) &&
                       __builtin_offsetof(struct pyro_walk, stack) ==
                           __builtin_offsetof(struct pyro_unwound_sample, stack),
                   "a walk begins as an unwound sample");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, PYRO_PROGRAMS);
  __type(key, __u32);
  __type(value, struct pyro_walk);
} walks SEC(".maps");

/* Processes whose mappings are known, by thread group id. Written by user space, by the fork
 * program, which gives a child its parent's entry, and by the exit program, which removes it; read
 * by the sampling program, which sets pyro_process.missed, guarded by start time and exec id. Set
 * at load; when full, a process stays unknown, its samples are left to user space, and it is tried
 * again. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct pyro_process);
} processes SEC(".maps");

/* The mapping arrays of all processes, each after its head and in one directly addressable value,
 * so that a search needs no helper call. Written by user space through mmap, in regions that no
 * program reads; read by the sampling program, which sets pyro_mapping_head.used. The number of
 * parts is set at load. When full, the processes that no tick has used lately become unknown. */
struct pyro_mapping_pool {
  struct pyro_mapping mappings[PYRO_POOL_PART];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct pyro_mapping_pool);
} mapping_pool SEC(".maps");

/* Unwind tables (abi/unwind.h); each of the first three is one directly addressable value. Written
 * by user space through mmap; read by the sampling program, which sets pyro_table_page.used. What
 * does not fit is not loaded; user space unwinds its samples. */
struct pyro_object_tables {
  struct pyro_object_table tables[PYRO_MAX_TABLES];
};
struct pyro_table_pages {
  struct pyro_table_page pages[PYRO_MAX_TABLE_PAGES];
};
struct pyro_unwind_rules {
  struct pyro_unwind_rule rules[PYRO_MAX_RULES];
};

#define PYRO_TABLE_MAP(name, value_type) \
  struct {                               \
    __uint(type, BPF_MAP_TYPE_ARRAY);    \
    __uint(max_entries, 1);              \
    __uint(map_flags, BPF_F_MMAPABLE);   \
    __type(key, __u32);                  \
    __type(value, value_type);           \
  } name SEC(".maps")

PYRO_TABLE_MAP(object_tables, struct pyro_object_tables);
PYRO_TABLE_MAP(table_pages, struct pyro_table_pages);
PYRO_TABLE_MAP(unwind_rules, struct pyro_unwind_rules);

/* Chunks of rows. User space makes each inner map when it is needed and removes it afterwards, so
 * that memory follows what is mapped on the machine, up to user space's budget. The verifier
 * inlines both lookups. */
struct pyro_chunk_map {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(struct pyro_unwind_chunk));
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, PYRO_MAX_CHUNKS);
  __type(key, __u32);
  __array(values, struct pyro_chunk_map);
} chunks SEC(".maps");

/* Samples for user space to unwind: struct pyro_cold_sample and its stack. And those that found no
 * room in a window map: struct pyro_unwound_sample. Written by the sampling program, which wakes
 * the reader when cold_wakeup_bytes wait; read by user space. Set at load; when full, a sample of
 * the first kind keeps what the kernel side can unwind and is marked, one of the other is lost. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} cold_samples SEC(".maps");

/* Scratch memory for assembling such a sample, by CPU and program: too large for a per-CPU
 * map, whose values have at most 32 KiB. The stack is read in pieces up to the next page, so a
 * piece may reach beyond. Set at load: PYRO_PROGRAMS for each CPU that may ship samples; those
 * of others keep what can be unwound here. */
struct pyro_cold_buffer {
  struct pyro_cold_sample sample;
  __u8 stack[PYRO_COLD_STACK_BYTES + PYRO_COLD_PIECE];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct pyro_cold_buffer);
} cold_buffers SEC(".maps");

/* How many of them have been shipped in the current second: in total, by pid and by user; those
 * with the same hash share a counter. Written by the sampling program on all CPUs. */
#define PYRO_COLD_PROCESSES 1024
#define PYRO_COLD_USERS 256

struct pyro_cold_count {
  __u32 second;
  __u32 count;
};

struct pyro_cold_rates {
  struct pyro_cold_count total;
  struct pyro_cold_count by_process[PYRO_COLD_PROCESSES];
  struct pyro_cold_count by_user[PYRO_COLD_USERS];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct pyro_cold_rates);
} cold_rates SEC(".maps");

/* Filters: each value is a bit mask of the generations that want the key. Written by user space;
 * the fork program copies a wanted process's mask to its children, the exit program removes exited
 * processes. When full, a child is not sampled and counted in `missed_children`, and user space
 * reports that the filter is too large. */
#define PYRO_WANTED_MAP(name, key_type, entries) \
  struct {                                       \
    __uint(type, BPF_MAP_TYPE_HASH);             \
    __uint(max_entries, entries);                \
    __type(key, key_type);                       \
    __type(value, __u8);                         \
  } name SEC(".maps")

struct pyro_comm {
  char name[PYRO_COMM_LEN];
};

PYRO_WANTED_MAP(wanted_pids, __u32, 16384);
PYRO_WANTED_MAP(wanted_comms, struct pyro_comm, 1024);
PYRO_WANTED_MAP(wanted_cgroups, __u64, 1024); /* kernfs ids of the cgroups' directories */

/* Cgroups of version 2, by kernfs id, whose tasks and those of the cgroups below them are not
 * sampled. Written by user space, which reports when it is full; read by the sampling program. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, PYRO_MAX_DENIED);
  __type(key, __u64);
  __type(value, __u8);
} denied_cgroups SEC(".maps");

/* Whether a cgroup is in or below a denied one, by program and the low bits of its id; the last one
 * asked for stays. Private to one program on one CPU. */
#define PYRO_VERDICTS 64

struct pyro_verdict {
  __u64 cgroup;
  __u32 generation; /* of the denied set */
  __u32 denied;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, PYRO_PROGRAMS *PYRO_VERDICTS);
  __type(key, __u32);
  __type(value, struct pyro_verdict);
} verdicts SEC(".maps");

#endif
