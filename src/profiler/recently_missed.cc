// SPDX-License-Identifier: Apache-2.0
#include "profiler/recently_missed.h"

#include <cstdint>

namespace pyrometer {

bool RecentlyMissed::Contains(ObjectId object, MonotonicTime now) {
  const auto keep = static_cast<uint64_t>(keep_.count());
  while (!in_order_.empty() && now.value() - in_order_.front().when.value() >= keep) ForgetFirst();
  return objects_.contains(object);
}

void RecentlyMissed::Add(ObjectId object, MonotonicTime now) {
  if (in_order_.size() >= most_) ForgetFirst();
  in_order_.push_back({.object = object, .when = now});
  objects_.insert(object);
}

void RecentlyMissed::ForgetFirst() {
  objects_.erase(in_order_.front().object);
  in_order_.pop_front();
}

}  // namespace pyrometer
