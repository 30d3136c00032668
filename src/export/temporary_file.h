// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A new file for what is going to be a file in the same directory, so that readers see it whole or
// not at all. Unlinks it unless it was renamed.
class TemporaryFile {
 public:
  // With mode 0644 less the umask. The error names `directory`.
  static Result<TemporaryFile> Create(const std::string& directory);

  // True of the names, without directory, that Create makes: what has one and is in nobody's hands
  // was left by a crash.
  static bool IsName(std::string_view name);

  TemporaryFile(TemporaryFile&& other) noexcept
      : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  int fd() const { return fd_.get(); }

  // Both close it first: some file systems tell of a full disk only then.
  // Replaces what is at `path`.
  Result<void> RenameTo(const std::string& path) &&;
  // False, and it is gone, if there is something at `path`.
  Result<bool> RenameToNew(const std::string& path) &&;

 private:
  TemporaryFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::string path_;  // empty: renamed, nothing to unlink
};

}  // namespace pyrometer
