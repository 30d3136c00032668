// SPDX-License-Identifier: Apache-2.0
#include "export/waiting_parcels.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyrometer {

void WaitingParcels::Add(WaitingParcel parcel) {
  begins_.insert(parcel.parcel->begin);
  bytes_ += BytesOf(*parcel.parcel);
  waiting_.push_back(std::move(parcel));
}

std::optional<WaitingParcel> WaitingParcels::Take(MonotonicTime now, bool hurry) {
  const auto first = std::ranges::find_if(
      waiting_, [&](const WaitingParcel& waiting) { return hurry || waiting.not_before <= now; });
  if (first == waiting_.end()) return std::nullopt;
  WaitingParcel taken = std::move(*first);
  waiting_.erase(first);
  return taken;
}

std::vector<WaitingParcel> WaitingParcels::TakeWindow() {
  if (waiting_.empty()) return {};
  const uint64_t window = std::ranges::min_element(waiting_, {}, &WaitingParcel::window)->window;
  const auto others =
      std::stable_partition(waiting_.begin(), waiting_.end(),
                            [&](const WaitingParcel& parcel) { return parcel.window == window; });
  std::vector<WaitingParcel> taken(std::make_move_iterator(waiting_.begin()),
                                   std::make_move_iterator(others));
  waiting_.erase(waiting_.begin(), others);
  return taken;
}

std::optional<WaitingParcel> WaitingParcels::TakeOldest() {
  if (waiting_.empty()) return std::nullopt;
  const auto oldest = std::ranges::min_element(waiting_, {}, &WaitingParcel::window);
  WaitingParcel taken = std::move(*oldest);
  waiting_.erase(oldest);
  return taken;
}

std::vector<WaitingParcel> WaitingParcels::TakeBornBefore(MonotonicTime horizon) {
  const auto old =
      std::stable_partition(waiting_.begin(), waiting_.end(),
                            [&](const WaitingParcel& parcel) { return parcel.born >= horizon; });
  std::vector<WaitingParcel> taken(std::make_move_iterator(old),
                                   std::make_move_iterator(waiting_.end()));
  waiting_.erase(old, waiting_.end());
  return taken;
}

void WaitingParcels::PutBackFirst(std::vector<WaitingParcel> parcels) {
  waiting_.insert(waiting_.begin(), std::make_move_iterator(parcels.begin()),
                  std::make_move_iterator(parcels.end()));
}

void WaitingParcels::Forget(const WaitingParcel& parcel) {
  begins_.erase(begins_.find(parcel.parcel->begin));
  bytes_ -= BytesOf(*parcel.parcel);
}

std::optional<MonotonicTime> WaitingParcels::NextTurn() const {
  if (waiting_.empty()) return std::nullopt;
  return std::ranges::min_element(waiting_, {}, &WaitingParcel::not_before)->not_before;
}

std::optional<WaitingParcels::WallTime> WaitingParcels::oldest() const {
  if (begins_.empty()) return std::nullopt;
  return *begins_.begin();
}

}  // namespace pyrometer
