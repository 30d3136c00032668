// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>

#include "base/log.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The cgroups in which the kernel side samples nothing: those that the configuration names, and
// those of which its rules drop every process. Of one thread.
class ExcludedCgroups {
 public:
  using Deny = std::function<Result<void>(uint64_t)>;
  using Allow = std::function<void(uint64_t)>;

  // `log` outlives this.
  ExcludedCgroups(Deny deny, Allow allow, Log& log);

  // Excludes these cgroups, by id, and no others; the first ones first, if there is not room for
  // all. The log is told of those that cannot be excluded; they are tried again at the next call.
  void Exclude(std::span<const uint64_t> named, std::span<const uint64_t> dropped);

 private:
  const Deny deny_;
  const Allow allow_;
  Log& log_;
  std::set<uint64_t> excluded_;
};

}  // namespace pyrometer
