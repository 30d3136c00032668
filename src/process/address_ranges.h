// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/btree_map.h>

#include <functional>
#include <memory>
#include <utility>

#include "process/user_share.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// A set of addresses of a program, as ranges that do not touch. Its memory is bounded: if there are
// too many ranges, the two nearest are merged, and the set then includes what lies between them.
// Thread-compatible.
class AddressRanges {
 public:
  AddressRanges() = default;
  // The same ranges, charged to `share` if there is one.
  AddressRanges(const AddressRanges& other, std::shared_ptr<UserShare> share)
      : ranges_(other.ranges_, Allocator(std::move(share))) {}

  // `end` is exclusive; does nothing if it is not above `start`.
  void Add(Address start, Address end);

  bool Contains(Address address) const;

  // Up to where Contains() answers as for `address`: the next border of the set above it, or
  // `limit` if that comes first.
  Address EndOfStretch(Address address, Address limit) const;

  void Clear() { ranges_.clear(); }
  bool empty() const { return ranges_.empty(); }

 private:
  using Allocator = Charged<std::pair<const Address, Address>>;

  void MergeNearest();

  absl::btree_map<Address, Address, std::less<Address>, Allocator> ranges_;  // start -> end
};

}  // namespace pyrometer
