// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pyrometer/profile.h"

namespace pyrometer {

// One request to a destination, encoded and ready to be sent: what queues and spools keep.
struct Parcel {
  std::string body;    // in the destination's own format, compressed
  std::string series;  // its labels as people write them: {service_name="nginx"}
  std::chrono::system_clock::time_point begin;  // of its window
  uint64_t samples = 0;                         // ticks in it: the sum of all ProfileSample::count
};

// A profile made ready for one destination.
struct Packed {
  std::vector<Parcel> parcels;
  // Ticks that no request could carry, by reason; with those of the parcels, all of the profile's.
  std::map<std::string, uint64_t> dropped{};
  // What was changed to fit the destination, by how: "label_renamed", "label_cleaned",
  // "label_shortened", "label_reserved", "label_limit" count labels; "stack_cut" counts ticks whose
  // stack lost frames at its root. For counters, and for telling people once.
  std::map<std::string, uint64_t> altered{};
};

// What became of one attempt to deliver a parcel.
enum class Outcome {
  kDelivered,
  kNotArrived,    // surely: refused, no connection, "come again later"; may be sent again
  kMaybeArrived,  // the answer is missing: sent again, it may be counted twice
  kRejected,      // the destination does not want it, now or ever
};

struct Receipt {
  Outcome outcome = Outcome::kDelivered;
  std::string reason{};   // a short stable word for counters: "http_429", "unavailable", "timeout"
  std::string message{};  // for people, with the server's own words; delivered whole: a warning
  std::optional<std::chrono::nanoseconds> retry_after{};  // what the server asked for
  uint64_t rejected_samples = 0;                          // of a parcel that was delivered in part
};

// A destination of profiles: a server, a directory. Delivery in two steps, so that what waits for a
// slow destination is small, survives a restart, and need not be encoded again for each attempt.
class ProfileSink {
 public:
  virtual ~ProfileSink() = default;

  // Encodes `profile`, split as the destination's limits demand. Thread-safe.
  virtual Packed Pack(const Profile& profile) const = 0;

  // One attempt, which takes no longer than the sink's own timeout. Thread-safe: several parcels
  // may be under way.
  virtual Receipt Deliver(const Parcel& parcel) = 0;

  // Makes what is under way, and anything later, fail soon instead of waiting. Any thread.
  virtual void Cancel() {}
};

}  // namespace pyrometer
