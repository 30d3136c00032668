/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel side needs to know about x86_64.
 */
#ifndef PYROMETER_ARCH_X86_BPF_H
#define PYROMETER_ARCH_X86_BPF_H

#include "types.bpf.h"

/* arch/x86/include/asm/ptrace.h; the layout is part of the system call entry and does not move. */
struct pyro_pt_regs {
  __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
      sp, ss;
};

/* What the kernel leaves at the very top of a task's kernel stack at a system call. */
static __always_inline __u32 pyro_entry_registers_size(void)
{
  return sizeof(struct pyro_pt_regs);
}

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

/* Whether `ip` follows the system call that is being executed. While orig_ax tells its number
 * (otherwise it is -1), execve() has put the new program's entry there, the delivery of a signal
 * the handler's, and rt_sigreturn() whatever was interrupted. SYSCALL leaves the address behind it
 * in rcx, except where the kernel uses FRED: there the instruction is looked at. */
static __always_inline bool pyro_follows_system_call(const struct pyro_pt_regs *regs)
{
  __u8 code[2];
  if ((__s64)regs->orig_ax < 0) return false;
  if (regs->cx == regs->ip) return true;
  if (bpf_probe_read_user(code, sizeof(code), (void *)(regs->ip - sizeof(code)))) return false;
  return code[0] == 0x0f && code[1] == 0x05;
}

static __always_inline void pyro_from_entry(const struct pyro_pt_regs *regs, __u64 *to,
                                            struct pyro_interrupted *out)
{
  to[0] = regs->ax, to[1] = regs->dx, to[2] = regs->cx, to[3] = regs->bx;
  to[4] = regs->si, to[5] = regs->di, to[6] = regs->bp, to[7] = regs->sp;
  to[8] = regs->r8, to[9] = regs->r9, to[10] = regs->r10, to[11] = regs->r11;
  to[12] = regs->r12, to[13] = regs->r13, to[14] = regs->r14, to[15] = regs->r15;
  out->pc = regs->ip;
  out->after_call = pyro_follows_system_call(regs);
}

/* True if the tick, while the idle task is current, interrupted the work of an interrupt: a
 * softirq, or an interrupt handler that enabled interrupts. All of that runs on the CPU's interrupt
 * stack in every kernel since 5.8 (arch/x86/include/asm/irq_stack.h), and the idle task never does.
 * The preempt count would tell as well, but lies in a per-CPU variable that has had three names and
 * is only found with CONFIG_KALLSYMS_ALL. */
static __always_inline bool pyro_serves_interrupt(struct bpf_perf_event_data *ctx)
{
  struct task_struct *idle = (struct task_struct *)bpf_get_current_task();
  const __u64 stack = (__u64)BPF_CORE_READ(idle, stack);
  return ctx->regs.rsp - stack >= pyro_kernel_stack_size();
}

#endif
