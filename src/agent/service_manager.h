// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "pyrometer/ids.h"

namespace pyrometer {

// Tells systemd how the service is (sd_notify(3)), if it is one of type notify; else nothing
// happens.
class ServiceManager {
 public:
  void Ready(const std::string& status) const;
  void Reloading(MonotonicTime now) const;
  void Stopping() const;
  // Shows that the service is alive.
  void Watchdog() const;

  // How often the service manager wants to see that; nothing if it does not.
  static std::optional<std::chrono::microseconds> WatchdogInterval();
};

}  // namespace pyrometer
