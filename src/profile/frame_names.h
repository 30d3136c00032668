// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// The code that frames stand for, under the best name seen so far. Names get better from window to
// window, which must not split one function in two.
// - A symbol's name replaces a made-up one, never the other way round.
// - At an offset of an object the latest symbol's name wins.
// - At an address of the kernel or of a process, two different symbols are different code, since
//   code comes and goes there: each gets its own entry. A made-up name goes to the entry seen last.
// Keeps one location per entry, the latest with the best name. Not thread-safe.
class FrameNames {
 public:
  // The process and program that a frame belongs to: a user address is meaningful only within one
  // process, until that executes another program.
  struct Owner {
    ProcessKey process;
    ExecId exec;
    auto operator<=>(const Owner&) const = default;
  };

  // Returns the index of the code at `frame`, which `location` names; the same code always has the
  // same index. Indices count from 0 in order of first appearance. REQUIRES: `location` is not
  // null.
  uint32_t Add(Frame frame, const Owner& owner, const LocationRef& location);

  // The same code is known better now, wherever it was added: under a symbol's name instead of a
  // made-up one, or with its place in the source. Anything else changes nothing.
  void Improve(Frame frame, const Owner& owner, const LocationRef& location);

  // The locations, by index.
  std::vector<LocationRef> Finish() &&;

 private:
  struct UserKey {
    Frame frame;
    Owner owner;
    auto operator<=>(const UserKey&) const = default;

    template <typename H>
    friend H AbslHashValue(H h, const UserKey& k) {
      return H::combine(std::move(h), k.frame, k.owner.process, k.owner.exec);
    }
  };
  struct Code {
    LocationRef location;
    uint32_t next = 0;  // in the ring of all code at one frame
  };

  // The code last seen at a frame, and its location, for comparing without a look-up.
  struct Latest {
    const Location* location = nullptr;  // null: none yet
    uint32_t code = 0;
  };

  Latest& LatestAt(Frame frame, const Owner& owner) {
    if (frame.kind() == Frame::Kind::kUserAddress) return latest_of_users_[UserKey{frame, owner}];
    return latest_[frame];
  }
  // Null if there was none.
  Latest* FindLatest(Frame frame, const Owner& owner);
  uint32_t Find(Frame::Kind kind, const Latest& latest, const LocationRef& location);

  absl::flat_hash_map<Frame, Latest> latest_;  // except for user addresses
  absl::flat_hash_map<UserKey, Latest> latest_of_users_;
  std::vector<Code> code_;
};

}  // namespace pyrometer
