// SPDX-License-Identifier: Apache-2.0
#include "unwind/call_site.h"

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "call_site.bpf.h"

namespace pyrometer {
std::optional<CallSite> CallSiteBefore(Address return_address,
                                       std::span<const std::byte, kCallSiteBytes> bytes) {
  static_assert(kCallSiteBytes == PYRO_CALL_SITE_BYTES);
  const auto* const code = reinterpret_cast<const __u8*>(bytes.data());
  if (pyro_is_direct_call(code)) {
    return CallSite{.target = Address(pyro_call_target(code, return_address.value()))};
  }
  if (pyro_is_indirect_call(code)) return CallSite{};
  return std::nullopt;
}

}  // namespace pyrometer
