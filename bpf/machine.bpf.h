/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The machine that this is compiled for: its registers, return addresses and call instructions.
 */
#ifndef PYROMETER_MACHINE_BPF_H
#define PYROMETER_MACHINE_BPF_H

#include <linux/types.h>

/* Bytes before a return address that tell whether they are a call; the longest indirect call of
 * x86_64 has 7 and a prefix. */
#define PYRO_CALL_SITE_BYTES 8

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#include "machine_arm64.bpf.h"
#elif defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#include "machine_x86.bpf.h"
#else
#error "unknown architecture"
#endif

#endif
