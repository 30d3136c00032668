// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

inline constexpr std::string_view kNoBtfAdvice =
    "this kernel has no type information (BTF) at /sys/kernel/btf/vmlinux; use a kernel built with "
    "CONFIG_DEBUG_INFO_BTF=y, as in all current distributions";

// Collects libbpf's messages during its lifetime instead of letting libbpf print them, and makes
// one helpful line of them when loading fails. libbpf's print function is global to the process: at
// most one LoadLog may exist at a time.
class LoadLog {
 public:
  LoadLog();
  ~LoadLog();
  LoadLog(const LoadLog&) = delete;
  LoadLog& operator=(const LoadLog&) = delete;

  // An Error for a failed libbpf call: kPermission and kUnsupported where the cause is known.
  Error Explain(int errnum, std::string_view what) const;
};

}  // namespace pyrometer
