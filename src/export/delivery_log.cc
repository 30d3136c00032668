// SPDX-License-Identifier: Apache-2.0
#include "export/delivery_log.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace pyrometer {
namespace {

// A destination that failed for less than that only had a hiccup; nobody wants to read of it.
constexpr std::chrono::seconds kOutage{30};

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

void DeliveryLog::Tell(const DeliveryNews& news, Outcome outcome, const std::string& series) const {
  const std::string name = fmt::format("sink {}", sink_);
  if (news.is_first) {
    log_.Tell(name, fmt::format("the first profile has arrived: {}", Printable(series, 300)));
  }
  if (news.recovered_after.value_or(std::chrono::seconds(0)) >= kOutage) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*news.recovered_after);
    log_.Tell(name, fmt::format("works again after {} s", seconds.count()));
  }
  if (!news.warning.empty()) {
    log_.Warn(fmt::format("{}: takes a profile and warns", name), Printable(news.warning, 300));
  }
  if (news.failure && !news.is_cancelled) {
    log_.Warn(fmt::format("{}: {} ({})", name, Meaning(outcome), news.failure->reason),
              news.failure->message);
  }
}

void DeliveryLog::Altered(const std::string& how, const std::string& series) const {
  log_.Tell(fmt::format("sink {}", sink_),
            fmt::format("changes what does not fit ({}), first in {}; its metrics count how often",
                        how, Printable(series, 300)));
}

void DeliveryLog::SpoolFailed(std::string_view what, const Error& error) const {
  log_.Failed(fmt::format("sink {}: {}", sink_, what), error);
}

}  // namespace pyrometer
