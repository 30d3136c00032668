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

/* Size of a task's kernel stack without KASAN; set at load. */
const volatile __u32 kernel_stack_size = 16384;

/* THREAD_SIZE: KASAN, whose kernels have this member, doubles it. */
static __always_inline __u32 pyro_kernel_stack_size(void)
{
  return bpf_core_field_exists(struct task_struct, kasan_depth) ? 2 * kernel_stack_size
                                                                : kernel_stack_size;
}

#if defined(__TARGET_ARCH_x86)
#include "arch_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arch_arm64.bpf.h"
#else
#error "unknown architecture"
#endif

/* bpf_task_pt_regs() exists since 5.15. Before, the entry registers are read where the entry code
 * leaves them: at the very top of the kernel stack. */
static __always_inline bool pyro_read_entry_registers(struct pyro_pt_regs *out)
{
  if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
    void *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
    return bpf_probe_read_kernel(out, sizeof(*out), regs) == 0;
  }
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  char *stack = BPF_CORE_READ(task, stack);
  const __u32 offset = pyro_kernel_stack_size() - pyro_entry_registers_size();
  return bpf_probe_read_kernel(out, sizeof(*out), stack + offset) == 0;
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
