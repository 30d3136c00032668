// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace pyrometer {

// Where ticks are. At any moment: offered = delivered + the sum of dropped + in_memory + spooled.
struct DeliveryTicks {
  uint64_t offered = 0;
  uint64_t delivered = 0;
  std::map<std::string, uint64_t> dropped;  // by reason, see README.md
  uint64_t in_memory = 0;                   // of windows and parcels; also of those under way
  uint64_t spooled = 0;
};

// The last failure of a delivery.
struct DeliveryFailure {
  std::string reason;
  std::string message;
  std::chrono::system_clock::time_point when;
};

// What became of all that one outbox was offered.
struct DeliveryCounters {
  DeliveryTicks ticks;
  // Of what an earlier run left in the spool, whose ticks were offered to that run: `offered` is
  // what was found. Parcels that cannot even be counted are in `unreadable`.
  DeliveryTicks found_in_spool;
  // What was changed to fit the destination, by how: see Packed::altered.
  std::map<std::string, uint64_t> altered;
  uint64_t unreadable = 0;  // files and parcels of earlier runs whose ticks are not known

  uint64_t parcels_delivered = 0;
  uint64_t parcels_rejected = 0;  // never sent again
  uint64_t bytes_delivered = 0;   // of their bodies
  uint64_t attempts = 0;          // requests
  uint64_t retries = 0;           // those of them whose parcel this run had tried before

  uint64_t windows_waiting = 0;  // to be packed
  uint64_t parcels_in_memory = 0;
  uint64_t bytes_in_memory = 0;  // of these parcels
  uint32_t under_way = 0;        // requests
  uint64_t spool_files = 0;
  uint64_t spool_bytes = 0;
  bool has_spool = false;  // false also if it cannot be used now

  bool is_failing = false;
  std::optional<DeliveryFailure> last_failure;
  std::optional<std::chrono::system_clock::time_point> last_success;
  // Of the oldest window of which something is neither delivered nor dropped.
  std::optional<std::chrono::system_clock::time_point> oldest_waiting;
};

}  // namespace pyrometer
