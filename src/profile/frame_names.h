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

// The code that frames stand for, under the best name seen so far: names get better from window to
// window, and a function must not come out as two for that.
// - A symbol's name replaces a made-up one, which never replaces a symbol's.
// - At an offset of an object the latest symbol's name wins.
// - At an address of the kernel or of a process two different symbols are different code, since
//   code comes and goes there: each is an entry of its own. A made-up name goes to the one seen
//   last.
// Keeps one location for each entry, the latest. Not thread-safe.
class FrameNames {
 public:
  // Whose frame it is: user addresses mean something only within one process, until it executes
  // another program.
  struct Owner {
    ProcessKey process;
    ExecId exec;
    auto operator<=>(const Owner&) const = default;
  };

  // The index of the code at `frame`, which `location` names: the same for the same code.
  // Indices count from 0 in the order of first sight. REQUIRES: `location` is not null.
  uint32_t Add(Frame frame, const Owner& owner, const LocationRef& location);

  // By index.
  std::vector<LocationRef> Finish() &&;

 private:
  struct Key {
    Frame frame;
    Owner owner;  // of a user address; else nobody
    auto operator<=>(const Key&) const = default;

    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.frame, k.owner.process, k.owner.exec);
    }
  };
  struct Code {
    LocationRef location;
    uint32_t next = 0;  // around all code of one key
  };

  absl::flat_hash_map<Key, uint32_t> latest_;  // the code last seen at each frame
  std::vector<Code> code_;
};

}  // namespace pyrometer
