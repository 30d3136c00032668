/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the sampler's kernel side and user space. Plain C with the fixed-width types of
 * <linux/types.h>. Sizes are asserted: a change here changes both sides.
 */
#ifndef PYROMETER_ABI_SAMPLER_H
#define PYROMETER_ABI_SAMPLER_H

#include <linux/types.h>

#include "pyrometer/abi/frame.h"

#ifdef __cplusplus
#define PYRO_STATIC_ASSERT static_assert
#else
#define PYRO_STATIC_ASSERT _Static_assert
#endif

#define PYRO_COMM_LEN 16
/* The unit of times in /proc/PID/stat (USER_HZ = 100), in nanoseconds. */
#define PYRO_CLOCK_TICK_NS 10000000ULL

/* bpf_get_stack returns at most kernel.perf_event_max_stack (127) frames. */
#define PYRO_MAX_KERNEL_FRAMES 127
#define PYRO_MAX_USER_FRAMES 512
/* A stack is stored in the smallest class that holds it; one map per class and window half. */
#define PYRO_STACK_CLASSES 3
#define PYRO_STACK_SMALL 32
#define PYRO_STACK_MEDIUM 128
#define PYRO_STACK_LARGE 640

/* Executable mappings of all known processes, and a head for each array of them, are in a pool of
 * parts, each of so many; an array lies in one part. (Linux 5.10 allows no map value of more than
 * 4 MiB, KMALLOC_MAX_SIZE.) */
#define PYRO_POOL_PART_SHIFT 16
#define PYRO_POOL_PART (1U << PYRO_POOL_PART_SHIFT)

/* General registers by DWARF number: x86_64 has 16 of them, arm64 31 and the stack pointer. */
#define PYRO_REGISTERS 32
/* The most stack that is copied for unwinding in user space. Most stacks are less than 16 KiB deep;
 * those of compilers and codecs are not. */
#define PYRO_COLD_STACK_BYTES 65536

/* How one run of the sampling program ended. Every run has exactly one outcome. */
enum pyro_outcome {
  PYRO_OUTCOME_EXPORTED,
  PYRO_OUTCOME_IDLE,
  PYRO_OUTCOME_FILTERED,
  PYRO_OUTCOME_LOST_STACK_MAP_FULL,
  PYRO_OUTCOME_LOST_COUNT_MAP_FULL,
  PYRO_OUTCOME_LOST_NO_MEMORY,
  PYRO_OUTCOME_LOST_MAP_BUSY, /* another update of the same bucket was interrupted by this tick */
  PYRO_OUTCOME_LOST_INTERNAL, /* a lookup that cannot fail has failed */
  PYRO_OUTCOMES
};

/* The word `active`. A tick reads it once, so it is judged by the filter of the window that it goes
 * to; user space changes both with one store. */
#define PYRO_ACTIVE_HALF 1U /* the half of the journals and window maps being written */
/* Filters come in generations, so that one can be prepared while another is in use. */
#define PYRO_ACTIVE_GENERATION_SHIFT 1
#define PYRO_FILTER_GENERATIONS 4
/* What the filter looks at. Without any of these every task is wanted, else any match counts. */
#define PYRO_ACTIVE_PIDS (1U << 3)
#define PYRO_ACTIVE_COMMS (1U << 4)
#define PYRO_ACTIVE_CGROUPS (1U << 5)
#define PYRO_ACTIVE_FILTERS (PYRO_ACTIVE_PIDS | PYRO_ACTIVE_COMMS | PYRO_ACTIVE_CGROUPS)

/* The most cgroups that can be denied at a time. */
#define PYRO_MAX_DENIED 1024

/* How the walk of the user stack ended. */
enum pyro_stack_end {
  PYRO_END_NO_USER_STACK,      /* there is none: a kernel thread (or io_uring worker), or exiting */
  PYRO_END_COMPLETE,           /* the outermost frame, by call frame information or a null */
  PYRO_END_TRUNCATED,          /* PYRO_MAX_USER_FRAMES reached */
  PYRO_END_NO_UNWIND_INFO,     /* the code has neither call frame information nor a frame pointer */
  PYRO_END_JIT,                /* the same in memory of no file: code generated at run time */
  PYRO_END_UNREADABLE,         /* stack memory not readable (paged out or unmapped) */
  PYRO_END_BAD_RETURN_ADDRESS, /* not in executable memory */
  PYRO_END_BAD_CFA,            /* the call frame information leads nowhere */
  PYRO_END_UNSUPPORTED,        /* the rule needs a register that is no longer known */
  PYRO_END_NOT_READY,    /* mappings or table not known yet, and too many such samples at a time; or
                          * a table could not be made for a time, and frames may be missing */
  PYRO_END_NO_REGISTERS, /* the user registers were not available */
  PYRO_STACK_ENDS
};

/* What is sampled. */
enum pyro_event_kind {
  PYRO_EVENT_CPU_CLOCK,   /* CPU time: a tick of each CPU's clock */
  PYRO_EVENT_PAGE_FAULTS, /* page faults, of which each period's last is a tick */
  PYRO_EVENT_KINDS
};

/* The programs that sample. One could interrupt another: each has its own memory. */
enum pyro_program {
  PYRO_PROGRAM_TICK, /* whatever the event */
  PYRO_PROGRAMS
};

/* Key of the counts map. */
struct pyro_sample_key {
  __u64 stack_id;          /* key in the stacks map of class stack_class */
  __u64 start_boottime_ns; /* of the thread group leader */
  __u32 pid;               /* thread group id, in the initial pid namespace */
  __u32 exec_id;           /* low 32 bits of self_exec_id: which program of this process */
  __u32 stack_class;
  __u32 event;                /* enum pyro_event_kind */
  char comm[PYRO_COMM_LEN];   /* of the thread group leader: the process */
  char thread[PYRO_COMM_LEN]; /* of the thread */
};

struct pyro_sample_count {
  __u64 count;
  __u64 first_ns; /* CLOCK_MONOTONIC of the first sample counted here */
  __u64 last_ns;  /* and of the last one */
};

/* Head of each value in the stacks maps; `frames` follows: kernel, then user, each leaf first. */
struct pyro_stack_head {
  __u16 kernel_frames;
  __u16 user_frames;
  __u8 user_end; /* enum pyro_stack_end */
  __u8 pad[3];
};

struct pyro_stack_small {
  struct pyro_stack_head head;
  __u64 frames[PYRO_STACK_SMALL];
};
struct pyro_stack_medium {
  struct pyro_stack_head head;
  __u64 frames[PYRO_STACK_MEDIUM];
};
struct pyro_stack_large {
  struct pyro_stack_head head;
  __u64 frames[PYRO_STACK_LARGE];
};

/* One executable mapping: address `a` in it has the object address `a - bias`. */
struct pyro_mapping {
  __u64 start;
  __u64 end;
  __u64 bias;
  __u32 object; /* 0 = anonymous: frames stay user addresses */
  __u32 table;  /* index of its struct pyro_object_table, and PYRO_MAPPING_SHIFTING */
};

/* Other files have been mapped in this range while the program ran, and may be again before user
 * space hears of it: samples in it are resolved in user space, by the time they were taken. */
#define PYRO_MAPPING_SHIFTING (1U << 31)

/* Just before the first mapping of each array. User space changes the generation before it takes
 * the region back, which makes all references to it worthless, also those that a fork has copied;
 * the memory is used again once no program runs that could have seen the generation before. In the
 * place of `generation` a mapping has its table, which never has this bit: nothing in the pool but
 * a head can be taken for one. */
struct pyro_mapping_head {
  __u64 unused[3];
  __u32
      used; /* set by the sampling program, cleared by user space, which evicts what is not used */
  __u32 generation; /* 0: none */
};

#define PYRO_MAPPING_GENERATION (1U << 30)

/* What the kernel side knows about a process. Valid only while all guards match the task: start
 * time, exec id and size of its executable memory, which changes when something is unmapped. */
struct pyro_process {
  /* start_boottime / PYRO_CLOCK_TICK_NS of the group leader, or one more: user space may know it
   * only from the fork event, which comes some 20 us later. An earlier process with this pid may
   * have started in the same tick, but no longer runs. */
  __u64 start_ticks;
  __u32 exec_id;
  __u32 first_mapping; /* index into the mapping pool */
  __u32 mapping_count; /* sorted by start, not overlapping */
  __u32 exec_pages;    /* mm->exec_vm: pages that are executable but not writable */
  __u16 exec_slack;    /* it may be so much more or less; what lies nowhere is then unknown */
  __u16 missed;        /* set by a tick that found its mappings gone from the pool */
  __u32 generation;    /* of these mappings in the pool; 0: they found no room */
};

/* Why a sample is unwound in user space. */
enum pyro_cold_reason {
  PYRO_COLD_PROCESS,      /* nothing is known about this program, or the guards do not match */
  PYRO_COLD_PLACE,        /* a mapping, table or page is not there yet, or is shifting */
  PYRO_COLD_EXOTIC,       /* a rule that only user space can evaluate */
  PYRO_COLD_HAND_WRITTEN, /* code without call frame information: its caller must be searched for */
  PYRO_COLD_REASONS
};

/* In pyro_sample_key.stack_class of what goes through the ring buffer: which struct it is. */
#define PYRO_COLD_TO_UNWIND 0
#define PYRO_COLD_UNWOUND 1

#define PYRO_COLD_PIECE 4096 /* the stack is read in pieces up to the next page */

/* A sample in the ring buffer for user space to unwind: the registers, and the stack from the stack
 * pointer upwards. Its `stack_bytes` bytes, up to the last that could be read, follow this struct.
 * Memory that was never written cannot be read: a function's large array may have such holes. Bit i
 * of `stack_holes`: there is nothing in the i-th piece of PYRO_COLD_PIECE bytes; the first piece is
 * the one that the stack pointer lies in. */
struct pyro_cold_sample {
  struct pyro_sample_key key; /* stack_class: PYRO_COLD_TO_UNWIND; stack_id is meaningless */
  __u64 time_ns;              /* CLOCK_MONOTONIC */
  __u64 pc;
  __u64 registers[PYRO_REGISTERS]; /* by DWARF number */
  __u32 exec_pages;
  __u16 kernel_frames;
  __u8 after_call; /* pc follows the instruction that is being executed (a system call) */
  __u8 reason;     /* enum pyro_cold_reason */
  __u32 stack_bytes;
  __u32 stack_holes;
  __u64 kernel_stack[PYRO_MAX_KERNEL_FRAMES + 1];
};

/* A sample in the ring buffer that was unwound and found no room in the maps. Of its frames only
 * those that it has follow. */
struct pyro_unwound_sample {
  struct pyro_sample_key key; /* stack_class: PYRO_COLD_UNWOUND; stack_id is meaningless */
  __u64 time_ns;
  struct pyro_stack_large stack;
};

/* A sample in a journal, with those of its frames that it has; the next record follows at once. One
 * of time 0 has not been written: there the journal ends. `stack_class` is the smallest class that
 * holds the stack, so that the key is that of the counts map. */
struct pyro_journal_record {
  struct pyro_sample_key key;
  __u64 time_ns; /* CLOCK_MONOTONIC */
  struct pyro_stack_medium stack;
};

#define PYRO_JOURNAL_HEAD __builtin_offsetof(struct pyro_journal_record, stack.frames)
/* Room for the largest record, and the time of one behind it. */
#define PYRO_JOURNAL_MIN_BYTES (sizeof(struct pyro_journal_record) + PYRO_JOURNAL_HEAD)

/* One record of the task iterator: what /proc does not show. */
struct pyro_task_record {
  __u64 start_boottime_ns; /* of the group leader */
  __u64 now_ns;            /* CLOCK_MONOTONIC when read */
  __u32 pid;               /* thread group id */
  __u32 tid;
  __u32 exec_id;
  __u32 pad;
};

PYRO_STATIC_ASSERT(sizeof(struct pyro_sample_key) == 64, "sample key is ABI");
PYRO_STATIC_ASSERT(sizeof(struct pyro_sample_count) == 24, "sample count is ABI");
PYRO_STATIC_ASSERT(sizeof(struct pyro_stack_head) == 8, "stack head is ABI");
PYRO_STATIC_ASSERT(sizeof(struct pyro_mapping) == 32, "mapping is ABI");
PYRO_STATIC_ASSERT(sizeof(struct pyro_mapping_head) == 32, "one mapping's room");
PYRO_STATIC_ASSERT(__builtin_offsetof(struct pyro_mapping_head, generation) ==
                       __builtin_offsetof(struct pyro_mapping, table),
                   "a mapping is never taken for a head");
PYRO_STATIC_ASSERT(sizeof(struct pyro_process) == 32, "process is ABI");
PYRO_STATIC_ASSERT(sizeof(struct pyro_cold_sample) == 1376, "cold sample is ABI");
PYRO_STATIC_ASSERT(__builtin_offsetof(struct pyro_unwound_sample, stack.frames) == 80,
                   "unwound sample is ABI");
PYRO_STATIC_ASSERT(PYRO_JOURNAL_HEAD == 80, "journal record is ABI");
PYRO_STATIC_ASSERT(sizeof(struct pyro_task_record) == 32, "task record is ABI");
PYRO_STATIC_ASSERT(PYRO_MAX_KERNEL_FRAMES + PYRO_MAX_USER_FRAMES <= PYRO_STACK_LARGE,
                   "the largest class holds every stack");

#endif
