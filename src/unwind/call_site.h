// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pyrometer/ids.h"

namespace pyrometer {

// A call instruction, as recognized from the address after it.
struct CallSite {
  std::optional<Address> target;  // nothing: an indirect call
};

// How many bytes before a return address are examined; the longest indirect call of x86_64 has 7.
inline constexpr size_t kCallSiteBytes = 8;

// The call that `return_address` may come from, judged by the kCallSiteBytes before it; nothing if
// they do not end in a call instruction (those of bpf/call_site.bpf.h).
std::optional<CallSite> CallSiteBefore(Address return_address,
                                       std::span<const std::byte, kCallSiteBytes> code);

}  // namespace pyrometer
