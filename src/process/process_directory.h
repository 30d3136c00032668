// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/procfs.h"
#include "base/unique_fd.h"
#include "process/proc_text.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The file tree that a process's paths refer to: its root directory in its mount namespace. A path
// means the same file for all processes with the same root.
struct RootIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t mount_namespace = 0;  // inode of /proc/PID/ns/mnt

  auto operator<=>(const RootIdentity&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const RootIdentity& r) {
    return H::combine(std::move(h), r.device, r.inode, r.mount_namespace);
  }
};

// True if `error` means that the process is gone. With any other error (no permission, no file
// descriptor or memory left, a signal) it lives and cannot be read now.
inline bool IsGone(const Error& error) {
  return error.code() == ErrorCode::kNotFound;
}

// /proc/PID of one process. When that process is gone, everything fails with kNotFound, even if the
// pid has been reused. Nothing here calls the file systems of the process's files, which may hang,
// or takes a lock of its memory, which it may hold (see ForeignFiles::ReadText).
class ProcessDirectory {
 public:
  // Errors: see IsGone().
  static Result<ProcessDirectory> Open(const Procfs& procfs, Pid pid);
  // For another owner. Errors: no descriptor is left.
  Result<ProcessDirectory> Duplicate() const;

  Result<ProcStat> Stat() const;
  Result<std::vector<Tid>> Threads() const;
  Result<RootIdentity> Root() const;
  // The same of a descriptor by OpenRoot().
  Result<RootIdentity> IdentityOfRoot(int root) const;
  Result<ProcStatus> Status() const;
  // The path of what it runs, in its own root; of an unlinked file the one it had. Errors: also
  // kPermission; kNotFound for a kernel thread.
  Result<std::string> Executable() const;
  // The text of `cgroup`: a line for each hierarchy, see cgroups(7).
  Result<std::string> Cgroups() const;
  // The root directory. O_PATH.
  Result<UniqueFd> OpenRoot() const;

  int fd() const { return fd_.get(); }  // O_PATH
  Pid pid() const { return pid_; }

 private:
  ProcessDirectory(UniqueFd fd, Pid pid) : fd_(std::move(fd)), pid_(pid) {}

  UniqueFd fd_;
  Pid pid_;
};

}  // namespace pyrometer
