// SPDX-License-Identifier: Apache-2.0
#include "export/delivery_log.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace pyrometer {
namespace {

const char* Meaning(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDelivered:
      return "takes only a part of a profile";
    case Outcome::kNotArrived:
      return "cannot be reached, or is busy";
    case Outcome::kMaybeArrived:
      return "does not say whether a profile arrived";
    case Outcome::kRejected:
      return "rejects a profile";
  }
  return "fails";
}

}  // namespace

void DeliveryLog::DeliveredFirst(const std::string& series) const {
  log_.Tell(fmt::format("sink {}", sink_),
            fmt::format("the first profile has arrived: {}", Printable(series, 300)));
}

void DeliveryLog::Failed(Outcome outcome, const DeliveryFailure& failure) const {
  log_.Warn(fmt::format("sink {}: {} ({})", sink_, Meaning(outcome), failure.reason),
            failure.message);
}

void DeliveryLog::Recovered(std::chrono::nanoseconds after) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(after).count();
  log_.Tell(fmt::format("sink {}", sink_), fmt::format("works again after {} s", seconds));
}

void DeliveryLog::SpoolFailed(std::string_view what, const Error& error) const {
  log_.Failed(fmt::format("sink {}: {}", sink_, what), error);
}

}  // namespace pyrometer
