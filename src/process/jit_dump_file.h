// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/file_identity.h"
#include "base/unique_fd.h"
#include "foreign/foreign_files.h"
#include "process/user_share.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A jitdump of a process, which a JIT compiler announces by mapping a page of it with the right to
// execute (Linux, tools/perf/Documentation/jitdump-specification.txt). Found when that is seen, it
// stays within reach whatever becomes of its name and of the process. Immutable: any number of
// threads may use it.
class JitDumpFile {
 public:
  // True for the names that they have: "jit-PID.dump".
  static bool IsCalledLikeOne(std::string_view path);

  // `file` (O_PATH) has the inode `inode`; no other has the same `number`.
  // `user` has mapped it.
  JitDumpFile(UniqueFd file, const Inode& inode, uint64_t number, UserId user,
              std::shared_ptr<ForeignFiles> files);

  // The file, or a copy of it; takes a second at most. Errors: kInvalid if it is not a regular
  // file; those of ForeignFiles.
  Result<UniqueFd> Open() const;

  const Inode& inode() const { return inode_; }
  uint64_t number() const { return number_; }
  UserId user() const { return user_; }

 private:
  const UniqueFd file_;
  const Inode inode_;
  const uint64_t number_;
  const UserId user_;
  const std::shared_ptr<ForeignFiles> files_;
};

// A jitdump tells of the code that a process has, as it was at any time up to `until`: when it was
// forked by whose jitdump it is.
struct JitDumpUse {
  std::shared_ptr<const JitDumpFile> file;
  MonotonicTime until{UINT64_MAX};
};

}  // namespace pyrometer
