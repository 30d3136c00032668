// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pyrometer/ids.h"

namespace pyrometer {

// A call instruction, seen from what follows it.
struct CallSite {
  std::optional<Address> target;  // nothing: an indirect call
};

// Bytes in front of a return address that tell; the longest indirect call of x86_64 has 7.
inline constexpr size_t kCallSiteBytes = 8;

// The call that `return_address` could come from, judged by the kCallSiteBytes in front of it;
// nothing if they end in no call instruction (bpf/call_site.bpf.h says which there are).
std::optional<CallSite> CallSiteBefore(Address return_address,
                                       std::span<const std::byte, kCallSiteBytes> code);

}  // namespace pyrometer
