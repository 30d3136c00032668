// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "export/delivery_counters.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// What one delivery tells about its sink.
struct DeliveryNews {
  bool is_first = false;  // that has arrived
  std::optional<DeliveryFailure> failure;
  std::string warning;  // that came with a delivery; of untrusted bytes
  std::optional<std::chrono::nanoseconds> recovered_after;  // so long an outage
  bool is_cancelled = false;                                // by us: no failure of the sink's
};

// Tells people how one sink is doing. Writing may wait, so never under a lock. Thread-safe.
class DeliveryLog {
 public:
  // `log` outlives this.
  DeliveryLog(std::string sink, Log& log) : sink_(std::move(sink)), log_(log) {}

  // Failures once for each kind of outcome and reason, with how often since.
  void Tell(const DeliveryNews& news, Outcome outcome, const std::string& series) const;
  // What a sink changes to make it fit, for the first time; `series` is where.
  void Altered(const std::string& how, const std::string& series) const;
  void SpoolFailed(std::string_view what, const Error& error) const;

 private:
  const std::string sink_;
  Log& log_;
};

}  // namespace pyrometer
