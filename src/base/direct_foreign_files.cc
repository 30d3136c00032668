// SPDX-License-Identifier: Apache-2.0
#include "base/direct_foreign_files.h"

#include <utility>

#include "base/foreign_file.h"

namespace pyrometer {

Result<OpenedFile> DirectForeignFiles::OpenForReading(int path_fd,
                                                      const FilePatience& /*patience*/) {
  ASSIGN_OR_RETURN(UniqueFd fd, OpenAgain(path_fd));
  return OpenedFile{.fd = std::move(fd), .is_copy = false};
}

Result<UniqueFd> DirectForeignFiles::LookUp(int root_fd, const std::string& path, int flags,
                                            const FilePatience& /*patience*/) {
  return FindInRoot(root_fd, path, flags);
}

}  // namespace pyrometer
