// SPDX-License-Identifier: Apache-2.0
// Machine code of a function void(uint64_t iterations) that keeps a frame pointer and counts down.
#pragma once

#if defined(__x86_64__)
static const unsigned char kLoopCode[] = {
    0x55,              // push %rbp
    0x48, 0x89, 0xe5,  // mov %rsp, %rbp
    0x48, 0xff, 0xcf,  // dec %rdi
    0x75, 0xfb,        // jnz, to the dec
    0x5d,              // pop %rbp
    0xc3,              // ret
};
#elif defined(__aarch64__)
static const unsigned int kLoopCode[] = {
    0xa9bf7bfd,  // stp x29, x30, [sp, #-16]!
    0x910003fd,  // mov x29, sp
    0xf1000400,  // subs x0, x0, #1
    0x54ffffe1,  // b.ne, to the subs
    0xa8c17bfd,  // ldp x29, x30, [sp], #16
    0xd65f03c0,  // ret
};
#endif
