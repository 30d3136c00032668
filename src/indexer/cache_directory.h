// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The directory of ArtifactCache's files: this user's, whom alone it lets in, as each of its files.
// Any number of processes and threads may use it; each file is written beside and then renamed, so
// nobody sees a half of one.
class CacheDirectory {
 public:
  struct File {
    std::string name;
    uint64_t bytes = 0;
    int64_t used_ns = 0;  // when it was written or last used, by the clock of the file system
  };

  // `symbols` in `parent`; makes both if they are not there (mode 0700). In `parent` others may
  // have files, too. Removes what writers left that have ended. Errors: kPermission if one of both
  // is a symbolic link or another user's, or others have access to the first; kUnsupported if it is
  // on no local file system; those of the file system.
  static Result<CacheDirectory> Open(std::string parent);

  // Errors: kNotFound; kMalformed if it is no file of this user, or one that others may open; those
  // of the file system.
  Result<UniqueFd> OpenFile(const std::string& name) const;

  // In place of the file of that name, if there is one, once `write` has written all of it. Not
  // synchronized with the disk: what a power loss leaves half written is found out when it is read.
  // Errors: those of `write` and of the file system; then nothing has changed.
  Result<void> Replace(const std::string& name,
                       const std::function<Result<void>(int fd)>& write) const;

  // False if it was not there, or cannot be removed.
  bool Remove(const std::string& name) const;

  // From now on it is the one used last. (Access times are not kept by every mount.)
  void MarkUsed(int fd) const;

  // All files but those being written, in no order. Empty, too, if the directory cannot be read.
  std::vector<File> List() const;

  // Whether the disk would still have `bytes` for others.
  bool Leaves(uint64_t bytes) const;

  // st_dev
  uint64_t file_system() const { return file_system_; }

 private:
  CacheDirectory(UniqueFd fd, uint64_t file_system)
      : fd_(std::move(fd)), file_system_(file_system) {}

  void RemoveUnfinished() const;
  void ForEachName(const std::function<void(const std::string& name)>& use) const;

  UniqueFd fd_;
  uint64_t file_system_ = 0;
};

}  // namespace pyrometer
