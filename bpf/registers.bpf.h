/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user registers of the current task, whether the tick hit user or kernel mode.
 */
#ifndef PYROMETER_REGISTERS_BPF_H
#define PYROMETER_REGISTERS_BPF_H

#include "types.bpf.h"

/* Where user code was interrupted. The other registers go into an array by DWARF number: too large
 * for the BPF stack, it lies in a map. */
struct pyro_interrupted {
  __u64 pc;
  __u8 after_call; /* pc follows the instruction that is being executed (a system call) */
};

/* Kernel stack size, for kernels without bpf_task_pt_regs (before 5.15); set at load. */
const volatile __u32 kernel_stack_size = 16384;

#if defined(__TARGET_ARCH_x86)

/* arch/x86/include/asm/ptrace.h; the layout is part of the system call entry and does not move. */
struct pyro_pt_regs {
  __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
      sp, ss;
};

static __always_inline bool pyro_in_user_mode(struct bpf_perf_event_data *ctx)
{
  return (ctx->regs.cs & 3) == 3;
}

static __always_inline void pyro_from_context(struct bpf_perf_event_data *ctx, __u64 *to,
                                              struct pyro_interrupted *out)
{
  to[0] = ctx->regs.rax, to[1] = ctx->regs.rdx, to[2] = ctx->regs.rcx, to[3] = ctx->regs.rbx;
  to[4] = ctx->regs.rsi, to[5] = ctx->regs.rdi, to[6] = ctx->regs.rbp, to[7] = ctx->regs.rsp;
  to[8] = ctx->regs.r8, to[9] = ctx->regs.r9, to[10] = ctx->regs.r10, to[11] = ctx->regs.r11;
  to[12] = ctx->regs.r12, to[13] = ctx->regs.r13, to[14] = ctx->regs.r14, to[15] = ctx->regs.r15;
  out->pc = ctx->regs.rip;
  out->after_call = 0;
}

static __always_inline void pyro_from_entry(const struct pyro_pt_regs *regs, __u64 *to,
                                            struct pyro_interrupted *out)
{
  to[0] = regs->ax, to[1] = regs->dx, to[2] = regs->cx, to[3] = regs->bx;
  to[4] = regs->si, to[5] = regs->di, to[6] = regs->bp, to[7] = regs->sp;
  to[8] = regs->r8, to[9] = regs->r9, to[10] = regs->r10, to[11] = regs->r11;
  to[12] = regs->r12, to[13] = regs->r13, to[14] = regs->r14, to[15] = regs->r15;
  out->pc = regs->ip;
  /* -1 on interrupts and exceptions; the number of the call on system calls. */
  out->after_call = (__s64)regs->orig_ax >= 0;
}

#elif defined(__TARGET_ARCH_arm64)

/* arch/arm64/include/asm/ptrace.h: user_pt_regs, then orig_x0 and syscallno. */
struct pyro_pt_regs {
  __u64 regs[31], sp, pc, pstate, orig_x0;
  __s32 syscallno;
  __u32 pad;
};

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

#else
#error "unknown architecture"
#endif

/* bpf_task_pt_regs() is there since 5.15. Before, the entry registers are found where the entry
 * code leaves them: at the very top of the kernel stack. */
static __always_inline bool pyro_read_entry_registers(struct pyro_pt_regs *out)
{
  if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
    void *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
    return bpf_probe_read_kernel(out, sizeof(*out), regs) == 0;
  }
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  char *stack = BPF_CORE_READ(task, stack);
#if defined(__TARGET_ARCH_arm64)
  /* pt_regs is longer than what we read of it. */
  const __u32 size = bpf_core_type_size(struct pt_regs);
#else
  const __u32 size = sizeof(*out);
#endif
  return bpf_probe_read_kernel(out, sizeof(*out), stack + kernel_stack_size - size) == 0;
}

/* False if the task has no user registers (it is exiting, or they cannot be read). */
static __always_inline bool pyro_user_registers(struct bpf_perf_event_data *ctx, __u64 *registers,
                                                struct pyro_interrupted *out)
{
  if (pyro_in_user_mode(ctx)) {
    pyro_from_context(ctx, registers, out);
    return true;
  }
  struct pyro_pt_regs regs;
  if (!pyro_read_entry_registers(&regs)) return false;
  pyro_from_entry(&regs, registers, out);
  return true;
}

#endif
