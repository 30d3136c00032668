// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "pyrometer/result.h"

namespace pyrometer {

// Which content a file has, as far as its file system tells without a look at it. Equal ones are of
// the same file, not written to in between: an inode number comes back after a deletion, but not
// with the same ctime, which nobody can set.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;   // ctime
  int64_t modified_ns = 0;  // mtime
  uint64_t size = 0;
  uint32_t links = 0;

  bool operator==(const FileIdentity&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const FileIdentity& f) {
    return H::combine(std::move(h), f.device, f.inode, f.changed_ns);
  }
};

// The identity of an open file, which may be open by O_PATH. Network and FUSE file systems answer
// from their cache, so that nobody waits for a server. Errors: kInvalid if it is not a regular
// file; those of statx(2).
Result<FileIdentity> IdentityOf(int fd);

// Which file or directory `fd` is, whatever its kind and content; asks nobody either.
struct Inode {
  uint64_t device = 0;
  uint64_t number = 0;

  bool operator==(const Inode&) const = default;
};
Result<Inode> InodeOf(int fd);

// The user it belongs to; asks nobody either.
Result<uint32_t> OwnerOf(int fd);

// When it was last written to, or its owner or names changed (ctime); asks nobody either.
Result<std::chrono::system_clock::time_point> ChangeTimeOf(int fd);

// True if a file that was found to be `identity` may have got its content between `when` and `now`.
// (A deleted file has another ctime, which is no sign of that. A time that is yet to come is of
// another clock, or of ours before it was set back. The times of files are those of the last tick,
// up to 10 ms before, or since Linux 6.13 exact where somebody has looked.)
bool MayBeWrittenBetween(const FileIdentity& identity, std::chrono::system_clock::time_point when,
                         std::chrono::system_clock::time_point now);

// True if `fd` is the file that was found to be `identity`, and has not been written to since. (It
// may have been deleted, which changes its ctime as well.) What was read of a file is that
// content's only if this is so after reading, too.
bool IsUnchanged(int fd, const FileIdentity& identity);

}  // namespace pyrometer
