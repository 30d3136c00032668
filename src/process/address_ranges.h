// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/btree_map.h>

#include "pyrometer/ids.h"

namespace pyrometer {

// A set of addresses of a program, as ranges that do not touch. Its memory is bounded: of too many
// ranges the two nearest become one, and what lies between them belongs to the set then.
// Thread-compatible.
class AddressRanges {
 public:
  // `end` is exclusive; nothing happens if it is not above `start`.
  void Add(Address start, Address end);

  bool Contains(Address address) const;

  // Where what Contains() says of `address` ends: the next border of the set above it, and `limit`
  // if that comes first.
  Address EndOfStretch(Address address, Address limit) const;

  void Clear() { ranges_.clear(); }
  bool empty() const { return ranges_.empty(); }

 private:
  void MergeNearest();

  absl::btree_map<Address, Address> ranges_;  // start -> end
};

}  // namespace pyrometer
