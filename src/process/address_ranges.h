// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/btree_map.h>

#include "pyrometer/ids.h"

namespace pyrometer {

// A set of addresses of a program, as ranges that do not touch. Its memory is bounded: if there are
// too many ranges, the two nearest are merged, and the set then includes what lies between them.
// Thread-compatible.
class AddressRanges {
 public:
  // `end` is exclusive; does nothing if it is not above `start`.
  void Add(Address start, Address end);

  bool Contains(Address address) const;

  // Up to where Contains() answers as for `address`: the next border of the set above it, or
  // `limit` if that comes first.
  Address EndOfStretch(Address address, Address limit) const;

  void Clear() { ranges_.clear(); }
  bool empty() const { return ranges_.empty(); }

 private:
  void MergeNearest();

  absl::btree_map<Address, Address> ranges_;  // start -> end
};

}  // namespace pyrometer
