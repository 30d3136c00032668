// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>

namespace pyrometer {

// Who may have made a file. Who takes a reader over, by a file that he made, can make it lie about
// whatever it reads from then on: so it reads only files of one owner, and what it says is believed
// of these alone.
struct SourceTrust {
  // Of files that have no name, which says nothing of who made them: copies of files on file
  // systems that may hang, memfds, and deleted files. No two of these trust each other.
  static constexpr uint32_t kNameless = ~uint32_t{0};

  uint32_t owner = kNameless;  // user id

  bool operator==(const SourceTrust&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const SourceTrust& t) {
    return H::combine(std::move(h), t.owner);
  }
};

// Of an open file, and of those `others` that there are (else -1): nameless if these are not of one
// owner. Asks no file system.
SourceTrust TrustOf(int fd, std::initializer_list<int> others = {});

}  // namespace pyrometer
