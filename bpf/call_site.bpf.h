/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recognizes the call instruction before a return address. Bytes that only look like a call count
 * as one.
 */
#ifndef PYROMETER_CALL_SITE_BPF_H
#define PYROMETER_CALL_SITE_BPF_H

#include "machine.bpf.h"

static __always_inline bool pyro_is_call(const __u8 *code)
{
  return pyro_is_direct_call(code) || pyro_is_indirect_call(code);
}

#endif
