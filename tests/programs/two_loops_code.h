// SPDX-License-Identifier: Apache-2.0
// Machine code of a function void(uint64_t first, uint64_t second) that keeps a frame pointer and
// counts down the one, then the other.
#pragma once

#if defined(__x86_64__)
static const unsigned char kTwoLoopsCode[] = {
    0x55,              // push %rbp
    0x48, 0x89, 0xe5,  // mov %rsp, %rbp
    0x48, 0xff, 0xcf,  // dec %rdi
    0x75, 0xfb,        // jnz, to the dec
    0x48, 0xff, 0xce,  // dec %rsi
    0x75, 0xfb,        // jnz, to the dec
    0x5d,              // pop %rbp
    0xc3,              // ret
};
enum { FIRST_LOOP = 4, SECOND_LOOP = 9, AFTER_LOOPS = 14 };
#elif defined(__aarch64__)
static const unsigned int kTwoLoopsCode[] = {
    0xa9bf7bfd,  // stp x29, x30, [sp, #-16]!
    0x910003fd,  // mov x29, sp
    0xf1000400,  // subs x0, x0, #1
    0x54ffffe1,  // b.ne, to the subs
    0xf1000421,  // subs x1, x1, #1
    0x54ffffe1,  // b.ne, to the subs
    0xa8c17bfd,  // ldp x29, x30, [sp], #16
    0xd65f03c0,  // ret
};
enum { FIRST_LOOP = 8, SECOND_LOOP = 16, AFTER_LOOPS = 24 };
#endif
