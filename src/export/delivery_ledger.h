// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "export/delivery_counters.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Whose ticks: offered to this run, or left in the spool by an earlier one.
enum class Origin { kThisRun, kEarlierRun };

// Books what becomes of ticks and of requests. Thread-compatible: the outbox's lock makes every
// booking and every reading one step.
class DeliveryLedger {
 public:
  using WallTime = std::chrono::system_clock::time_point;

  // Ticks come in: into memory, or found in the spool.
  void Offered(uint64_t ticks);
  void Found(uint64_t ticks);
  // Ticks leave memory for the spool.
  void Spooled(uint64_t ticks);
  // Ticks in memory, or in the spool, end here. A reason beyond the 32nd is booked as "other".
  void DroppedFromMemory(uint64_t ticks, std::string_view reason);
  void DroppedFromSpool(uint64_t ticks, Origin origin, std::string_view reason);
  void Unreadable(uint64_t count) { counters_.unreadable += count; }

  // Returns what was never changed in this way before.
  std::vector<std::string> Altered(const std::map<std::string, uint64_t>& altered);

  void Attempted(bool is_retry);
  // Of a parcel in memory, or in the spool; without what the destination refused of it.
  void DeliveredFromMemory(const Parcel& parcel, const Receipt& receipt, WallTime now);
  void DeliveredFromSpool(const Parcel& parcel, Origin origin, const Receipt& receipt,
                          WallTime now);
  // Returns what was booked: words fit for one line.
  DeliveryFailure Failed(const Receipt& receipt, WallTime now);

  const DeliveryCounters& counters() const { return counters_; }

 private:
  DeliveryTicks& Of(Origin origin) {
    return origin == Origin::kThisRun ? counters_.ticks : counters_.found_in_spool;
  }
  void Delivered(DeliveryTicks& ticks, const Parcel& parcel, const Receipt& receipt);
  void Drop(DeliveryTicks& ticks, uint64_t count, std::string_view reason);
  std::string Known(std::string_view reason);

  std::set<std::string, std::less<>> reasons_;  // bounded, whatever sinks make reasons of
  DeliveryCounters counters_;
};

}  // namespace pyrometer
