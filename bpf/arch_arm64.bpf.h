/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel side needs to know about arm64.
 */
#ifndef PYROMETER_ARCH_ARM64_BPF_H
#define PYROMETER_ARCH_ARM64_BPF_H

#include "types.bpf.h"

/* arch/arm64/include/asm/ptrace.h: user_pt_regs, then orig_x0 and syscallno. */
struct pyro_pt_regs {
  __u64 regs[31], sp, pc, pstate, orig_x0;
  __s32 syscallno;
  __u32 pad;
};

/* What the kernel leaves at the very top of a task's kernel stack; longer than what we read. */
static __always_inline __u32 pyro_entry_registers_size(void)
{
  return bpf_core_type_size(struct pt_regs);
}

/* PSTATE.M: EL0t is 0. */
static __always_inline bool pyro_in_user_mode(struct bpf_perf_event_data *ctx)
{
  return (ctx->regs.pstate & 0xf) == 0;
}

static __always_inline void pyro_from_context(struct bpf_perf_event_data *ctx, __u64 *to,
                                              struct pyro_interrupted *out)
{
#pragma unroll
  for (int i = 0; i < 31; ++i) to[i] = ctx->regs.regs[i];
  to[31] = ctx->regs.sp;
  out->pc = ctx->regs.pc;
  out->after_call = 0;
}

static __always_inline void pyro_from_entry(const struct pyro_pt_regs *regs, __u64 *to,
                                            struct pyro_interrupted *out)
{
  __builtin_memcpy(to, regs->regs, sizeof(regs->regs));
  to[31] = regs->sp;
  out->pc = regs->pc;
  out->after_call = regs->syscallno >= 0;
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct thread_info___arm64 {
  __u64 preempt_count;
};
struct task_struct___arm64 {
  struct thread_info___arm64 thread_info;
};
#pragma clang attribute pop

/* include/linux/preempt.h: set while a softirq is being served. */
#define PYRO_SOFTIRQ_OFFSET 0x100

/* True if the tick, while the idle task is current, interrupted a softirq. (Before 6.1 softirqs run
 * on the stack of the task they interrupted, so the stack does not tell.) */
static __always_inline bool pyro_serves_interrupt(struct bpf_perf_event_data *ctx)
{
  struct task_struct___arm64 *idle = (struct task_struct___arm64 *)bpf_get_current_task();
  return BPF_CORE_READ(idle, thread_info.preempt_count) & PYRO_SOFTIRQ_OFFSET;
}

#endif
