// SPDX-License-Identifier: Apache-2.0
#include "agent/service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdint>

namespace pyrometer {

void ServiceManager::Ready(const std::string& status) const {
  ::sd_notifyf(0, "READY=1\nSTATUS=%s", status.c_str());
}

void ServiceManager::Reloading(MonotonicTime now) const {
  const auto microseconds = static_cast<unsigned long long>(now.value() / 1000);
  ::sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", microseconds);
}

void ServiceManager::Stopping() const {
  ::sd_notify(0, "STOPPING=1\nSTATUS=sending what is left");
}

void ServiceManager::Watchdog() const {
  ::sd_notify(0, "WATCHDOG=1");
}

std::optional<std::chrono::microseconds> ServiceManager::WatchdogInterval() {
  uint64_t interval = 0;
  if (::sd_watchdog_enabled(0, &interval) <= 0) return std::nullopt;
  return std::chrono::microseconds(interval);
}

}  // namespace pyrometer
