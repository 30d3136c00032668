// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/foreign_files.h"

namespace pyrometer {

// Opens files in this process: for file systems that answer. It heeds no limit, and where one does
// not answer it hangs.
class DirectForeignFiles final : public ForeignFiles {
 public:
  Result<OpenedFile> OpenForReading(int path_fd, const FilePatience& patience) override;
  Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags,
                          const FilePatience& patience) override;
};

}  // namespace pyrometer
