/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampler's kernel side: what it does at a tick, a fork and an exit, and the list of tasks.
 */
#include "cold.bpf.h"
#include "filter.bpf.h"
#include "journal.bpf.h"
#include "maps.bpf.h"
#include "parts.bpf.h"
#include "registers.bpf.h"
#include "types.bpf.h"
#include "unwind.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* PYRO_ACTIVE_*: where ticks go, and which ones are wanted. Only user space changes it. */
volatile __u32 active = 0;

/* Entries added to each window map since its half was last drained: stack classes, then counts.
 * Written by the sampling program, reset by user space after draining. */
__u32 used[2][PYRO_STACK_CLASSES + 1] = {};

/* Set at load. */
const volatile bool want_kernel_stacks = true;
/* What a tick is of, enum pyro_event_kind. */
const volatile __u32 sampled_event = PYRO_EVENT_CPU_CLOCK;
/* Makes the stack hash unpredictable for the profiled programs. */
const volatile __u64 hash_seed = 0;

static __always_inline void pyro_account(__u32 half, enum pyro_outcome outcome)
{
  __u32 key = half * PYRO_OUTCOMES + outcome;
  __u64 *runs = bpf_map_lookup_elem(&outcomes, &key);
  if (runs) ++*runs;
}

static __always_inline void pyro_add_time(__u64 since_ns)
{
  const __u32 zero = 0;
  __u64 *sum = bpf_map_lookup_elem(&tick_time, &zero);
  if (sum) *sum += bpf_ktime_get_ns() - since_ns;
}

/* Pads with nulls: before 5.17 the kernel leaves bytes of a longer, earlier name after the end. */
static __always_inline void pyro_read_comm(char *comm, struct task_struct *task)
{
  __builtin_memset(comm, 0, PYRO_COMM_LEN);
  BPF_CORE_READ_STR_INTO((char(*)[PYRO_COMM_LEN])comm, task, comm);
}

/* What a tick needs to know about its task. With the typed pointer of bpf_get_current_task_btf()
 * (5.11) each member takes one load instruction, otherwise one helper call: 25 ns each, a third of
 * the cost of a shallow stack. */
struct pyro_task {
  struct task_struct *leader;
  __u64 start_boottime_ns;
  __u32 exec_id;
  __u32 exec_pages; /* of its address space: executable and not writable */
  bool has_user_stack;
};

static __always_inline void pyro_look_at(struct pyro_task *out)
{
  if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    out->leader = task->group_leader;
    out->start_boottime_ns = task->group_leader->start_boottime;
    out->exec_id = (__u32)task->self_exec_id;
    out->has_user_stack = !(task->flags & PF_KTHREAD) && task->mm;
    out->exec_pages = out->has_user_stack ? (__u32)task->mm->exec_vm : 0;
  } else {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    out->leader = BPF_CORE_READ(task, group_leader);
    out->start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
    out->exec_id = (__u32)BPF_CORE_READ(task, self_exec_id);
    out->has_user_stack = !(BPF_CORE_READ(task, flags) & PF_KTHREAD) && BPF_CORE_READ(task, mm);
    out->exec_pages = out->has_user_stack ? (__u32)BPF_CORE_READ(task, mm, exec_vm) : 0;
  }
}

/* Fills in who is running: everything in the key but the stack and the kind of event. */
static __always_inline void pyro_identify(const struct pyro_task *task, __u64 pid_tgid,
                                          struct pyro_sample_key *key)
{
  key->pid = pid_tgid >> 32;
  /* The idle tasks are reported as one process, which they are to the kernel. */
  key->start_boottime_ns = key->pid ? task->start_boottime_ns : 0;
  key->exec_id = task->exec_id;
  bpf_get_current_comm(key->thread, sizeof(key->thread));
  if (key->pid == (__u32)pid_tgid)
    __builtin_memcpy(key->comm, key->thread, sizeof(key->comm));
  else
    pyro_read_comm(key->comm, task->leader);
}

/* Whether `process` is the one that started at this time; see pyro_process.start_ticks. */
static __always_inline bool pyro_is_of(const struct pyro_process *process, __u64 start_boottime_ns)
{
  return process->start_ticks - start_boottime_ns / PYRO_CLOCK_TICK_NS <= 1;
}

/* Whether the mappings that the entry refers to are still in the pool. Notes that a tick used them,
 * or would have. */
static __always_inline bool pyro_holds_mappings(struct pyro_process *process)
{
  struct pyro_mapping_pool *pool = pyro_pool_part(process->first_mapping);
  if (!pool) return false;
  struct pyro_mapping_head *head =
      (struct pyro_mapping_head *)pyro_mapping_at(pool, process->first_mapping - 1);
  if (!process->generation || *(volatile __u32 *)&head->generation != process->generation) {
    process->missed = 1;
    return false;
  }
  if (!head->used) head->used = 1;
  return true;
}

/* Points the walk to the process's mappings, if those known are of this very program. */
static __always_inline void pyro_find_mappings(struct pyro_walk *walk)
{
  walk->mapping_count = 0;
  struct pyro_process *process = bpf_map_lookup_elem(&processes, &walk->key.pid);
  if (!process) return;
  if (!pyro_is_of(process, walk->key.start_boottime_ns)) return;
  if (process->exec_id != walk->key.exec_id) return;
  /* User space hears of new mappings some milliseconds late, and of unmapping never. */
  const __u32 slack = process->exec_slack;
  if (walk->exec_pages - process->exec_pages + slack > 2 * slack) return;
  if (!pyro_holds_mappings(process)) return;
  walk->drifted = walk->exec_pages != process->exec_pages;
  walk->first_mapping = process->first_mapping;
  walk->last_mapping = process->first_mapping;
  walk->mapping_count = process->mapping_count;
}

static __always_inline void pyro_kernel_stack(struct bpf_perf_event_data *ctx,
                                              struct pyro_walk *walk)
{
  if (!want_kernel_stacks || pyro_in_user_mode(ctx)) return;
  const long bytes =
      bpf_get_stack(ctx, walk->stack.frames, PYRO_MAX_KERNEL_FRAMES * sizeof(__u64), 0);
  if (bytes <= 0) return;
  const __u32 frames = (__u32)bytes / sizeof(__u64);
  for (__u32 i = 0; i < PYRO_MAX_KERNEL_FRAMES && i < frames; ++i)
    walk->hash = pyro_mix(walk->hash, walk->stack.frames[i]);
  walk->frames = frames;
}

/* Finds where the process's executable mappings begin and end. */
static __always_inline bool pyro_find_code(struct pyro_walk *walk)
{
  struct pyro_mapping_pool *pool = pyro_pool_part(walk->first_mapping);
  if (!pool || !walk->mapping_count) return false;
  walk->lowest_code = pyro_mapping_at(pool, walk->first_mapping)->start;
  walk->highest_code = pyro_mapping_at(pool, walk->first_mapping + walk->mapping_count - 1)->end;
  return true;
}

static __always_inline __u32 pyro_cold_reason(const struct pyro_walk *walk, int end)
{
  if (end == PYRO_WALK_EXOTIC) return PYRO_COLD_EXOTIC;
  if (end == PYRO_WALK_HAND_WRITTEN) return PYRO_COLD_HAND_WRITTEN;
  return walk->mapping_count ? PYRO_COLD_PLACE : PYRO_COLD_PROCESS;
}

#define PYRO_SHIPPED (-1)

/* Returns enum pyro_stack_end, or PYRO_SHIPPED if user space unwinds the stack. */
static __always_inline int pyro_user_stack(struct bpf_perf_event_data *ctx, struct pyro_walk *walk)
{
  int end = pyro_start_walk(ctx, walk);
  if (end != PYRO_WALK_ON) return end;
  PYRO_PART(PYRO_PART_REGISTERS);
  pyro_find_mappings(walk);
  PYRO_PART(PYRO_PART_PROCESS);
  walk->stay = 0;
  end = pyro_walk_user(walk->program);
  if (end == PYRO_WALK_HAND_WRITTEN && pyro_find_code(walk)) {
    for (int i = 0; i < PYRO_MAX_HAND_WRITTEN && end == PYRO_WALK_HAND_WRITTEN; ++i) {
      if (!pyro_find_caller(walk)) break;
      end = pyro_walk_user(walk->program);
    }
  }
  if (end >= 0) return end;

  const __u32 reason = pyro_cold_reason(walk, end);
  if (pyro_ship(ctx, walk, reason)) {
    __sync_fetch_and_add(&cold_shipped[reason], 1);
    return PYRO_SHIPPED;
  }
  __sync_fetch_and_add(&cold_refused, 1);
  if (end == PYRO_WALK_EXOTIC) return PYRO_END_UNSUPPORTED;
  if (end == PYRO_WALK_HAND_WRITTEN) return PYRO_END_NO_UNWIND_INFO;
  /* From here on, walk what is unknown by frame pointers. */
  walk->stay = 1;
  end = pyro_walk_user(walk->program);
  return end == PYRO_END_TRUNCATED ? end : PYRO_END_NOT_READY;
}

#define PYRO_E2BIG 7
#define PYRO_EEXIST 17

/* Map updates return an int. Before 6.4 it is not sign-extended, because the verifier calls the
 * map's function directly: taken as a long, -E2BIG would be a large number. */
static __always_inline enum pyro_outcome pyro_outcome_of(int error, enum pyro_outcome full)
{
  switch (error) {
    case -PYRO_E2BIG:
      return full;
    case -12: /* ENOMEM */
      return PYRO_OUTCOME_LOST_NO_MEMORY;
    case -16: /* EBUSY */
      return PYRO_OUTCOME_LOST_MAP_BUSY;
    default:
      return PYRO_OUTCOME_LOST_INTERNAL;
  }
}

static __always_inline void pyro_note_use(const struct pyro_walk *walk, __u32 map)
{
  __sync_fetch_and_add(&used[walk->half & 1][map], 1);
}

/* Stores the walk's stack in the active half of a class, unless it is there already. */
static __always_inline int pyro_store_stack(void *halves, struct pyro_walk *walk, __u32 stack_class)
{
  walk->key.stack_class = stack_class;
  void *stacks = bpf_map_lookup_elem(halves, &walk->half);
  if (!stacks) return -1;
  if (bpf_map_lookup_elem(stacks, &walk->key.stack_id)) return 0;
  const int error = bpf_map_update_elem(stacks, &walk->key.stack_id, &walk->stack, BPF_NOEXIST);
  if (!error) pyro_note_use(walk, stack_class);
  return error == -PYRO_EEXIST ? 0 : error;
}

/* In the smallest class that fits; where that is full, in a larger one. */
static __always_inline int pyro_store_in_class(struct pyro_walk *walk)
{
  if (walk->frames <= PYRO_STACK_SMALL) {
    const int error = pyro_store_stack(&small_halves, walk, 0);
    if (error != -PYRO_E2BIG) return error;
  }
  if (walk->frames <= PYRO_STACK_MEDIUM) {
    const int error = pyro_store_stack(&medium_halves, walk, 1);
    if (error != -PYRO_E2BIG) return error;
  }
  return pyro_store_stack(&large_halves, walk, 2);
}

static __always_inline int pyro_count(struct pyro_walk *walk)
{
  void *counts = bpf_map_lookup_elem(&counts_halves, &walk->half);
  if (!counts) return -1;
  const __u64 now = bpf_ktime_get_ns();
  struct pyro_sample_count *known = bpf_map_lookup_elem(counts, &walk->key);
  if (!known) {
    const struct pyro_sample_count first = {.count = 1, .first_ns = now, .last_ns = now};
    const int error = bpf_map_update_elem(counts, &walk->key, &first, BPF_NOEXIST);
    if (!error) pyro_note_use(walk, PYRO_STACK_CLASSES);
    if (error != -PYRO_EEXIST) return error;
    /* Another CPU was faster. */
    known = bpf_map_lookup_elem(counts, &walk->key);
    if (!known) return -1;
  }
  __sync_fetch_and_add(&known->count, 1);
  known->last_ns = now;
  return 0;
}

/* What became of a sample that a window map gave this error for. */
static __always_inline enum pyro_outcome pyro_not_stored(struct pyro_walk *walk, int error,
                                                         enum pyro_outcome full)
{
  if (error == -PYRO_E2BIG && pyro_ship_unwound(walk)) return PYRO_OUTCOME_EXPORTED;
  return pyro_outcome_of(error, full);
}

/* In the CPU's journal; where that has no room, in the window maps. */
static __always_inline enum pyro_outcome pyro_store(struct pyro_walk *walk)
{
  walk->key.stack_class = walk->frames <= PYRO_STACK_SMALL ? 0 : 1;
  const bool in_journal = pyro_write_journal(walk);
  const int stack_error = in_journal ? 0 : pyro_store_in_class(walk);
  if (stack_error) return pyro_not_stored(walk, stack_error, PYRO_OUTCOME_LOST_STACK_MAP_FULL);
  PYRO_PART(PYRO_PART_STORE);
  const int count_error = in_journal ? 0 : pyro_count(walk);
  PYRO_PART(PYRO_PART_COUNT);
  if (count_error) return pyro_not_stored(walk, count_error, PYRO_OUTCOME_LOST_COUNT_MAP_FULL);
  return PYRO_OUTCOME_EXPORTED;
}

static __always_inline enum pyro_outcome pyro_sample(struct bpf_perf_event_data *ctx,
                                                     __u64 pid_tgid, __u32 program,
                                                     __u32 now_active)
{
  struct pyro_task task;
  struct pyro_walk *walk = bpf_map_lookup_elem(&walks, &program);
  if (!walk) return PYRO_OUTCOME_LOST_INTERNAL;

  pyro_look_at(&task);
  pyro_identify(&task, pid_tgid, &walk->key);
  walk->key.event = sampled_event;
  if (!pyro_wanted(&walk->key, now_active)) return PYRO_OUTCOME_FILTERED;

  PYRO_PART(PYRO_PART_ENTRY);
  walk->program = program;
  walk->half = now_active & PYRO_ACTIVE_HALF;
  walk->hash = hash_seed;
  walk->frames = 0;
  walk->user_frames = 0;
  pyro_kernel_stack(ctx, walk);
  PYRO_PART(PYRO_PART_KERNEL_STACK);
  walk->stack.head.kernel_frames = walk->frames;
  walk->exec_pages = task.exec_pages;
  const int end = task.has_user_stack ? pyro_user_stack(ctx, walk) : PYRO_END_NO_USER_STACK;
  if (end == PYRO_SHIPPED) return PYRO_OUTCOME_EXPORTED;
  walk->stack.head.user_end = end;
  walk->stack.head.user_frames = walk->user_frames;
  walk->key.stack_id = pyro_mix(
      walk->hash, ((__u64)walk->stack.head.kernel_frames << 8) | walk->stack.head.user_end);
  return pyro_store(walk);
}

SEC("perf_event")
int pyro_tick(struct bpf_perf_event_data *ctx)
{
  PYRO_PART(PYRO_PART_NONE);
  /* Read once: stack, count and outcome must go to the same half, the one of the filter. */
  const __u32 now_active = active;
  const __u64 pid_tgid = bpf_get_current_pid_tgid();
  const __u32 half = now_active & PYRO_ACTIVE_HALF;
  enum pyro_outcome outcome = PYRO_OUTCOME_FILTERED;

  if (!pid_tgid && !pyro_serves_interrupt(ctx)) {
    pyro_account(half, PYRO_OUTCOME_IDLE);
    return 0;
  }
  const __u64 since_ns = bpf_ktime_get_ns();
  if (!pyro_denied(PYRO_PROGRAM_TICK))
    outcome = pyro_sample(ctx, pid_tgid, PYRO_PROGRAM_TICK, now_active);
  pyro_account(half, outcome);
  pyro_add_time(since_ns);
  return 0;
}

/* A child starts with its parent's address space: what is known of the parent holds for it. */
static __always_inline void pyro_inherit_mappings(struct task_struct *parent,
                                                  struct task_struct *child, __u32 parent_pid,
                                                  __u32 child_pid)
{
  struct pyro_process *known = bpf_map_lookup_elem(&processes, &parent_pid);
  if (!known || !pyro_is_of(known, BPF_CORE_READ(parent, group_leader, start_boottime))) return;
  struct pyro_process entry = *known;
  entry.start_ticks = BPF_CORE_READ(child, start_boottime) / PYRO_CLOCK_TICK_NS;
  bpf_map_update_elem(&processes, &child_pid, &entry, BPF_ANY);
}

SEC("raw_tp/sched_process_fork")
int pyro_fork(struct bpf_raw_tracepoint_args *ctx)
{
  struct task_struct *parent = (struct task_struct *)ctx->args[0];
  struct task_struct *child = (struct task_struct *)ctx->args[1];
  const __u32 parent_pid = BPF_CORE_READ(parent, tgid);
  const __u32 child_pid = BPF_CORE_READ(child, tgid);

  if (parent_pid == child_pid) return 0; /* a thread */
  pyro_inherit_mappings(parent, child, parent_pid, child_pid);
  pyro_want_child(parent_pid, child_pid);
  return 0;
}

SEC("raw_tp/sched_process_exit")
int pyro_exit(struct bpf_raw_tracepoint_args *ctx)
{
  struct task_struct *task = (struct task_struct *)ctx->args[0];
  __u32 pid = BPF_CORE_READ(task, tgid);
  /* The kernel decrements the count before the tracepoint: 0 means the last thread. */
  if (BPF_CORE_READ(task, signal, live.counter) != 0) return 0;
  bpf_map_delete_elem(&wanted_pids, &pid);
  /* User space may never hear of a process that it did not see being forked either. */
  bpf_map_delete_elem(&processes, &pid);
  return 0;
}

/* Lists start times and exec ids of all tasks: /proc rounds the former and lacks the latter. */
SEC("iter/task")
int pyro_list_tasks(struct bpf_iter__task *ctx)
{
  struct task_struct *task = ctx->task;
  if (!task) return 0;
  struct pyro_task_record record = {
      .start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime),
      .now_ns = bpf_ktime_get_ns(),
      .pid = BPF_CORE_READ(task, tgid),
      .tid = BPF_CORE_READ(task, pid),
      .exec_id = (__u32)BPF_CORE_READ(task, self_exec_id),
  };
  bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
  return 0;
}
