// SPDX-License-Identifier: Apache-2.0
// Machine code of two functions that keep a frame pointer, equally long: void(uint64_t iterations),
// which counts down, and void(char* page), which writes there.
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
static const unsigned char kTouchCode[] = {
    0x55,              // push %rbp
    0x48, 0x89, 0xe5,  // mov %rsp, %rbp
    0xc6, 0x07, 0x01,  // movb $1, (%rdi)
    0x90, 0x90,        // nop, nop
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
static const unsigned int kTouchCode[] = {
    0xa9bf7bfd,  // stp x29, x30, [sp, #-16]!
    0x910003fd,  // mov x29, sp
    0x3900001f,  // strb wzr, [x0]
    0xa8c17bfd,  // ldp x29, x30, [sp], #16
    0xd65f03c0,  // ret
};
#endif
