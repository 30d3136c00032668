// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Objects for which a search recently failed. A miss is forgotten after a while, because a package
// installed meanwhile may bring what was missing. Not thread-safe.
class RecentlyMissed {
 public:
  // Remembers at most `most` objects, the latest ones.
  RecentlyMissed(std::chrono::nanoseconds keep, size_t most) : keep_(keep), most_(most) {}

  // REQUIRES: `now` is not earlier than in an earlier call.
  bool Contains(ObjectId object, MonotonicTime now);

  // REQUIRES: !Contains(object, now).
  void Add(ObjectId object, MonotonicTime now);

 private:
  struct Miss {
    ObjectId object;
    MonotonicTime when;
  };

  void ForgetFirst();

  std::chrono::nanoseconds keep_;
  size_t most_;
  std::deque<Miss> in_order_;
  absl::flat_hash_set<ObjectId> objects_;
};

}  // namespace pyrometer
