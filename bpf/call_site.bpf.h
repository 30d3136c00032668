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

/* FF /2, whatever bytes it ends in: its displacement may look like a call itself. */
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
