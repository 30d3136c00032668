// SPDX-License-Identifier: Apache-2.0
#include "base/procfs.h"

#include <fmt/format.h>

namespace pyrometer {

std::string Procfs::Of(Pid pid, std::string_view name) const {
  return fmt::format("{}/{}/{}", root, pid.value(), name);
}

}  // namespace pyrometer
