// SPDX-License-Identifier: Apache-2.0
// What the programs for the unwinder share.
#pragma once

#define NOINLINE __attribute__((noinline, noclone))
// A stack that a compiler has to realign: the ABI gives it 16 bytes.
#define ALIGNED(bytes) __attribute__((aligned(bytes)))

// The compiler does not know what becomes of `pointer`, nor what is behind it afterwards.
#define ESCAPE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
