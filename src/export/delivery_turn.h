// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "export/spooled_files.h"
#include "export/waiting_parcels.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// A window's profiles, not yet packed.
struct OfferedWindow {
  std::shared_ptr<const std::vector<Profile>> profiles;  // at least one
  uint64_t number = 0;
  uint64_t ticks = 0;
  MonotonicTime offered;
  MonotonicTime not_before;  // its parcels may go out
};

// A parcel whose turn to be delivered it is; from memory or from the spool.
struct DeliveryTurn {
  std::variant<WaitingParcel, SpooledParcel> parcel;
  uint64_t backoff_period = 0;
};

}  // namespace pyrometer
