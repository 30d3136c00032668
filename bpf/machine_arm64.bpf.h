/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the unwinder needs to know about arm64.
 */
#ifndef PYROMETER_MACHINE_ARM64_BPF_H
#define PYROMETER_MACHINE_ARM64_BPF_H

/* DWARF numbers, and where the kernel leaves the registers of what a signal interrupted: relative
 * to the stack pointer after the handler has returned into the signal frame (struct rt_sigframe).
 */
#define PYRO_REGISTER_FP 29
#define PYRO_REGISTER_LR 30
#define PYRO_REGISTER_SP 31
#define PYRO_SIGNAL_REGISTERS 312
/* Registers that a called function need not preserve: x0 to x18. */
#define PYRO_VOLATILE_REGISTERS 0x0007ffffU

/* Removes the pointer authentication code, which lies above the 48 bits of a user address. */
static __always_inline __u64 pyro_strip(__u64 address)
{
  return address & ((1ULL << 48) - 1);
}

/* Arm Architecture Reference Manual: BL; BLR, and BLRAA and its variants. */
static __always_inline __u32 pyro_last_instruction(const __u8 *code)
{
  return (__u32)code[4] | (__u32)code[5] << 8 | (__u32)code[6] << 16 | (__u32)code[7] << 24;
}

static __always_inline bool pyro_is_direct_call(const __u8 *code)
{
  return (pyro_last_instruction(code) & 0xfc000000) == 0x94000000;
}

static __always_inline __u64 pyro_call_target(const __u8 *code, __u64 return_address)
{
  const __s64 words = (__s32)(pyro_last_instruction(code) << 6) >> 6;
  return return_address - 4 + (__u64)(words * 4);
}

static __always_inline bool pyro_is_indirect_call(const __u8 *code)
{
  return (pyro_last_instruction(code) & 0xfefff000) == 0xd63f0000;
}

#endif
