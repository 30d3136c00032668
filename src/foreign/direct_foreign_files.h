// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "foreign/foreign_files.h"

namespace pyrometer {

// Opens files in this process: for file systems and processes that answer. It heeds no limit, and
// where one does not answer it hangs; as does reading a text, which is no copy and has no end but
// its own.
class DirectForeignFiles : public ForeignFiles {
 public:
  Result<OpenedFile> OpenForReading(int path_fd, const FilePatience& patience) override;
  Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags,
                          const FilePatience& patience) override;
  Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most,
                            const FilePatience& patience) override;
  Result<UniqueFd> Follow(int directory_fd, const std::string& name,
                          const FilePatience& patience) override;
};

}  // namespace pyrometer
