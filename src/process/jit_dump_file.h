// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_identity.h"
#include "base/foreign_files.h"
#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The file in which a process's JIT compiler tells of its code, and which it announces by mapping
// it executable under the name of jit-PID.dump. Found while the process lives, it can be read
// afterwards, deleted or not. Immutable: any number of threads may use it.
class JitDumpFile {
 public:
  // Whose jitdump a mapped file is by its name: a pid in the process's own namespace. Nothing: it
  // is none.
  static std::optional<Pid> ProcessOf(std::string_view path);

  // `file` is open by O_PATH, `path` is what messages call it. Errors: those of statx(2).
  static Result<JitDumpFile> Of(UniqueFd file, std::string_view path,
                                std::shared_ptr<ForeignFiles> files);

  const Inode& inode() const { return inode_; }

  // The file, or a copy of it; takes a second at most. Errors: kInvalid if it is not a regular
  // file; kExhausted if its file system does not answer; kPermission, kIo.
  Result<UniqueFd> Open() const;

 private:
  JitDumpFile(UniqueFd file, const Inode& inode, std::string_view path,
              std::shared_ptr<ForeignFiles> files);

  UniqueFd file_;
  Inode inode_;
  std::string path_;
  std::shared_ptr<ForeignFiles> files_;
};

}  // namespace pyrometer
