// SPDX-License-Identifier: Apache-2.0
#include "export/delivery_ledger.h"

#include <algorithm>

#include "base/printable.h"

namespace pyrometer {
namespace {

// A server's words end in one line of a log.
constexpr size_t kMostWords = 300;
// Sinks make few; this is against one that makes them of a server's words.
constexpr size_t kMostReasons = 32;

}  // namespace

void DeliveryLedger::Offered(uint64_t ticks) {
  counters_.ticks.offered += ticks;
  counters_.ticks.in_memory += ticks;
}

void DeliveryLedger::Found(uint64_t ticks) {
  counters_.found_in_spool.offered += ticks;
  counters_.found_in_spool.spooled += ticks;
}

void DeliveryLedger::Spooled(uint64_t ticks) {
  counters_.ticks.in_memory -= ticks;
  counters_.ticks.spooled += ticks;
}

void DeliveryLedger::DroppedFromMemory(uint64_t ticks, std::string_view reason) {
  counters_.ticks.in_memory -= ticks;
  Drop(counters_.ticks, ticks, reason);
}

void DeliveryLedger::DroppedFromSpool(uint64_t ticks, Origin origin, std::string_view reason) {
  Of(origin).spooled -= ticks;
  Drop(Of(origin), ticks, reason);
}

std::vector<std::string> DeliveryLedger::Altered(const std::map<std::string, uint64_t>& altered) {
  std::vector<std::string> news;
  for (const auto& [how, count] : altered) {
    const std::string known = Known(how);
    if (!counters_.altered.contains(known)) news.push_back(known);
    counters_.altered[known] += count;
  }
  return news;
}

void DeliveryLedger::Attempted(bool is_retry) {
  ++counters_.attempts;
  if (is_retry) ++counters_.retries;
}

void DeliveryLedger::DeliveredFromMemory(const Parcel& parcel, const Receipt& receipt,
                                         WallTime now) {
  counters_.ticks.in_memory -= parcel.samples;
  counters_.last_success = now;
  Delivered(counters_.ticks, parcel, receipt);
}

void DeliveryLedger::DeliveredFromSpool(const Parcel& parcel, Origin origin, const Receipt& receipt,
                                        WallTime now) {
  Of(origin).spooled -= parcel.samples;
  counters_.last_success = now;
  Delivered(Of(origin), parcel, receipt);
}

void DeliveryLedger::Delivered(DeliveryTicks& ticks, const Parcel& parcel, const Receipt& receipt) {
  const uint64_t rejected = std::min(receipt.rejected_samples, parcel.samples);
  ticks.delivered += parcel.samples - rejected;
  Drop(ticks, rejected, receipt.reason.empty() ? "rejected" : receipt.reason);
  ++counters_.parcels_delivered;
  counters_.bytes_delivered += parcel.body.size();
}

DeliveryFailure DeliveryLedger::Failed(const Receipt& receipt, WallTime now) {
  if (receipt.outcome == Outcome::kRejected) ++counters_.parcels_rejected;
  DeliveryFailure failure{.reason = Known(receipt.reason),
                          .message = Printable(receipt.message, kMostWords),
                          .when = now};
  counters_.last_failure = failure;
  return failure;
}

void DeliveryLedger::Drop(DeliveryTicks& ticks, uint64_t count, std::string_view reason) {
  if (count != 0) ticks.dropped[Known(reason)] += count;
}

std::string DeliveryLedger::Known(std::string_view reason) {
  std::string name = reason.empty() ? "unknown" : Printable(reason, 64);
  if (!reasons_.contains(name)) {
    if (reasons_.size() >= kMostReasons) return "other";
    reasons_.insert(name);
  }
  return name;
}

}  // namespace pyrometer
