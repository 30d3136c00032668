// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/log.h"
#include "export/delivery_counters.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Tells people how one sink is doing. Writing may wait, so never under a lock. Thread-safe.
class DeliveryLog {
 public:
  // `log` outlives this.
  DeliveryLog(std::string sink, Log& log) : sink_(std::move(sink)), log_(log) {}

  void DeliveredFirst(const std::string& series) const;
  // Once for each kind of outcome and reason, with how often since.
  void Failed(Outcome outcome, const DeliveryFailure& failure) const;
  void Recovered(std::chrono::nanoseconds after) const;
  void SpoolFailed(std::string_view what, const Error& error) const;

 private:
  const std::string sink_;
  Log& log_;
};

}  // namespace pyrometer
