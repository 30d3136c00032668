/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One stack frame in 64 bits, made by the kernel side and used throughout user space.
 *
 *   bits 63..60   kind
 *   kind 0        user address: the rest is a runtime address of the sampled process, whose mapping
 *                 was unknown when the sample was taken (or is anonymous: JIT code)
 *   kind 1        object frame: bits 59..40 object id, bits 39..0 address in that object's own
 *                 space (ELF vaddr). The same in every process and after every restart.
 *   kind 15       kernel address, unchanged: kernel addresses have these bits set anyway
 *
 * The address is ready for look-up: the interrupted pc itself in the leaf frame, the return address
 * minus one in the others, so that it lies in the call instruction.
 */
#ifndef PYROMETER_ABI_FRAME_H
#define PYROMETER_ABI_FRAME_H

#define PYRO_FRAME_KIND_SHIFT 60
#define PYRO_FRAME_USER_ADDRESS 0ULL
#define PYRO_FRAME_OBJECT 1ULL
#define PYRO_FRAME_KERNEL 15ULL

#define PYRO_FRAME_OFFSET_BITS 40
#define PYRO_FRAME_OBJECT_BITS 20
#define PYRO_FRAME_OFFSET_MASK ((1ULL << PYRO_FRAME_OFFSET_BITS) - 1)
#define PYRO_FRAME_OBJECT_MASK ((1ULL << PYRO_FRAME_OBJECT_BITS) - 1)

#define PYRO_OBJECT_FRAME(object, offset)                          \
  ((PYRO_FRAME_OBJECT << PYRO_FRAME_KIND_SHIFT) |                  \
   (((object)&PYRO_FRAME_OBJECT_MASK) << PYRO_FRAME_OFFSET_BITS) | \
   ((offset)&PYRO_FRAME_OFFSET_MASK))

#endif
