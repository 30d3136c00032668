/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Call instructions, seen from the return address behind them. Bytes that only look like one are
 * taken for one.
 */
#ifndef PYROMETER_CALL_SITE_BPF_H
#define PYROMETER_CALL_SITE_BPF_H

/* Bytes in front of a return address that tell; the longest indirect call of x86_64 has 7 and a
 * prefix. */
#define PYRO_CALL_SITE_BYTES 8

#if !defined(__TARGET_ARCH_arm64) && !defined(__aarch64__)

/* Intel SDM volume 2, CALL: E8 rel32. */
static __always_inline bool pyro_is_direct_call(const __u8 *code)
{
  return code[3] == 0xe8;
}

/* Where it leads. */
static __always_inline __u64 pyro_call_target(const __u8 *code, __u64 return_address)
{
  const __u32 distance =
      (__u32)code[4] | (__u32)code[5] << 8 | (__u32)code[6] << 16 | (__u32)code[7] << 24;
  return return_address + (__u64)(__s64)(__s32)distance;
}

/* FF /2 with as many bytes after its ModRM byte as the addressing form has: none, a SIB byte,
 * an 8-bit or a 32-bit displacement. */
static __always_inline bool pyro_is_indirect_call(const __u8 *code)
{
#define PYRO_MOD(modrm) ((modrm) >> 6)
#define PYRO_RM(modrm) ((modrm)&7)
#define PYRO_CALLS(at) (code[at] == 0xff && (code[(at) + 1] & 0x38) == 0x10)
  if (PYRO_CALLS(6))
    return PYRO_MOD(code[7]) == 3 ||
           (PYRO_MOD(code[7]) == 0 && PYRO_RM(code[7]) != 4 && PYRO_RM(code[7]) != 5);
  if (PYRO_CALLS(5) && ((PYRO_MOD(code[6]) == 1 && PYRO_RM(code[6]) != 4) ||
                        (PYRO_MOD(code[6]) == 0 && PYRO_RM(code[6]) == 4)))
    return true;
  if (PYRO_CALLS(4) && PYRO_MOD(code[5]) == 1 && PYRO_RM(code[5]) == 4) return true;
  if (PYRO_CALLS(2) && ((PYRO_MOD(code[3]) == 2 && PYRO_RM(code[3]) != 4) ||
                        (PYRO_MOD(code[3]) == 0 && PYRO_RM(code[3]) == 5)))
    return true;
  return PYRO_CALLS(1) && PYRO_MOD(code[2]) == 2 && PYRO_RM(code[2]) == 4;
#undef PYRO_MOD
#undef PYRO_RM
#undef PYRO_CALLS
}

#else

/* Arm Architecture Reference Manual: BL; BLR, also BLRAA and its kind. */
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

static __always_inline bool pyro_is_call(const __u8 *code)
{
  return pyro_is_direct_call(code) || pyro_is_indirect_call(code);
}

#endif
