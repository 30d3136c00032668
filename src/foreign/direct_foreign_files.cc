// SPDX-License-Identifier: Apache-2.0
#include "foreign/direct_foreign_files.h"

#include <fcntl.h>

#include <utility>

#include "base/file.h"
#include "foreign/foreign_file.h"

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

Result<UniqueFd> DirectForeignFiles::ReadText(int directory_fd, const std::string& name,
                                              uint64_t /*most*/, const FilePatience& /*patience*/) {
  return OpenAt(directory_fd, name, O_RDONLY);
}

Result<UniqueFd> DirectForeignFiles::Follow(int directory_fd, const std::string& name,
                                            const FilePatience& /*patience*/) {
  return OpenAt(directory_fd, name, O_PATH);
}

}  // namespace pyrometer
