// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "pyrometer/event.h"
#include "pyrometer/result.h"

namespace pyrometer {

// "cpu-clock", "page-faults": the names of kEvents. Errors: kInvalid, with these.
Result<EventKind> ParseEvent(std::string_view text);

// Beyond this nobody would see a sample.
inline constexpr uint64_t kLongestEventPeriod = 1'000'000'000;

// "10": a sample for every so many events, 1 to kLongestEventPeriod. Errors: kInvalid.
Result<uint64_t> ParseEventPeriod(std::string_view text);

}  // namespace pyrometer
