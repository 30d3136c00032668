/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the unwinder needs to know about x86_64.
 */
#ifndef PYROMETER_MACHINE_X86_BPF_H
#define PYROMETER_MACHINE_X86_BPF_H

/* DWARF numbers, and where the kernel leaves the registers of what a signal interrupted: relative
 * to the stack pointer after the handler has returned into the signal frame (struct rt_sigframe).
 */
#define PYRO_REGISTER_FP 6
#define PYRO_REGISTER_SP 7
#define PYRO_REGISTER_RBX 3
#define PYRO_SIGNAL_REGISTERS 40
#define PYRO_SIGNAL_WORDS 17
/* Registers that a called function need not preserve: rax, rdx, rcx, rsi, rdi, r8 to r11. */
#define PYRO_VOLATILE_REGISTERS 0x0f37U

/* Removes what is not part of an address: nothing on x86_64. */
static __always_inline __u64 pyro_strip(__u64 address)
{
  return address;
}

/* Intel SDM volume 2, CALL: E8 rel32. */
static __always_inline bool pyro_is_direct_call(const __u8 *code)
{
  return code[3] == 0xe8;
}

/* The target of a direct call. */
static __always_inline __u64 pyro_call_target(const __u8 *code, __u64 return_address)
{
  const __u32 distance =
      (__u32)code[4] | (__u32)code[5] << 8 | (__u32)code[6] << 16 | (__u32)code[7] << 24;
  return return_address + (__u64)(__s64)(__s32)distance;
}

/* Length of FF with this ModRM byte and, where the addressing form has one, this SIB byte, without
 * prefixes (Intel SDM volume 2, tables 2-2 and 2-3). */
static __always_inline __u32 pyro_length_of_ff(__u8 modrm, __u8 sib)
{
  const __u8 mod = modrm >> 6;
  const __u8 rm = modrm & 7;
  const bool has_sib = mod != 3 && rm == 4;
  /* No base register but RIP, or none at all. */
  const bool no_base = mod == 0 && (rm == 5 || (has_sib && (sib & 7) == 5));
  const __u32 displacement = mod == 2 || no_base ? 4 : mod == 1;
  return 2 + has_sib + displacement;
}

/* FF /2, whatever its last bytes: its displacement may look like a call itself. */
static __always_inline bool pyro_is_indirect_call(const __u8 *code)
{
  for (__u32 length = 2; length < PYRO_CALL_SITE_BYTES; ++length) {
    const __u8 *call = code + PYRO_CALL_SITE_BYTES - length;
    if (call[0] == 0xff && (call[1] & 0x38) == 0x10 &&
        pyro_length_of_ff(call[1], length > 2 ? call[2] : 0) == length)
      return true;
  }
  return false;
}

#endif
