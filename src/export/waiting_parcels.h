// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// A parcel in memory.
struct WaitingParcel {
  std::shared_ptr<const Parcel> parcel;
  uint64_t window = 0;       // its number
  MonotonicTime born;        // when its window was offered
  MonotonicTime not_before;  // when it may go out
  uint64_t attempts = 0;
  uint64_t refusals = 0;         // since others were taken
  uint64_t answers_at_last = 0;  // of the destination, at the last attempt
};

// The parcels in memory, in the order of their windows; those whose turn is over are out with
// somebody, and still count. Thread-compatible.
class WaitingParcels {
 public:
  using WallTime = std::chrono::system_clock::time_point;

  void Add(WaitingParcel parcel);
  // Out goes the first that may at `now`; `hurry`: any.
  std::optional<WaitingParcel> Take(MonotonicTime now, bool hurry);
  // Out go all of the oldest window that has any.
  std::vector<WaitingParcel> TakeWindow();
  std::optional<WaitingParcel> TakeOldest();
  // Those that were born before `horizon`.
  std::vector<WaitingParcel> TakeBornBefore(MonotonicTime horizon);

  // What was out comes back: behind all others, so that one that is always refused does not keep
  // them waiting; or in front.
  void PutBack(WaitingParcel parcel) { waiting_.push_back(std::move(parcel)); }
  void PutBackFirst(std::vector<WaitingParcel> parcels);
  // What was out is gone.
  void Forget(const WaitingParcel& parcel);

  // Of those that wait: when the first may go out.
  std::optional<MonotonicTime> NextTurn() const;

  bool has_waiting() const { return !waiting_.empty(); }
  uint64_t count() const { return begins_.size(); }
  uint64_t bytes() const { return bytes_; }
  std::optional<WallTime> oldest() const;

  // What a parcel takes, besides what little everything takes.
  static uint64_t BytesOf(const Parcel& parcel) {
    return sizeof(WaitingParcel) + sizeof(Parcel) + parcel.body.size() + parcel.series.size();
  }

 private:
  std::deque<WaitingParcel> waiting_;
  std::multiset<WallTime> begins_;  // of all; also those that are out
  uint64_t bytes_ = 0;              // likewise
};

}  // namespace pyrometer
