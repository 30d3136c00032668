// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "export/spool_file.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The name of the directory for the sink `name` in the spool's: letters, digits, '-' and '_' stay
// as they are, and no name leads out of the directory.
std::string SpoolNameOf(std::string_view name);

// A file of a spool, from outside.
struct SpoolFileFacts {
  uint64_t number = 0;
  uint64_t bytes = 0;
  std::chrono::system_clock::time_point written;
};

// The directory in which one sink's parcels wait, locked for one process. Files are numbered in the
// order in which they were written; what has another kind of name is left alone. Thread-safe, but
// only one thread may write.
class SpoolDirectory {
 public:
  // Makes `path` (mode 0700) if it is not there, and removes what an interrupted Write left.
  // Errors: kExhausted if another process has it; those of the file system.
  static Result<SpoolDirectory> Open(const std::string& path);

  // The files in the spool at `path`, oldest first, whoever has it. Errors: kNotFound if `path` is
  // no spool's directory; those of the file system.
  static Result<std::vector<SpoolFileFacts>> Look(const std::string& path);

  // The files there are, oldest first.
  Result<std::vector<uint64_t>> List() const;

  // Errors: kNotFound, kMalformed if it is no spool file (any more), kIo.
  Result<SpoolFile> OpenFile(uint64_t number) const;

  // When it returns, the file survives a power loss; if it fails, there is none. REQUIRES: no file
  // of that number. Errors: kNotFound if the directory was deleted, kExhausted if the disk is full,
  // those of the file system.
  Result<void> Write(uint64_t number, std::span<const Parcel* const> parcels) const;

  // It is no error if the file is gone.
  Result<void> Remove(uint64_t number) const;

  // Removes the directory with its lock; the spool must be empty and is not used any more. If there
  // is something else in it, that stays. Errors: those of the file system.
  Result<void> RemoveItself() const;

  // False if it was deleted, or another one stands in its place.
  bool IsInPlace() const;

  const std::string& path() const { return path_; }

 private:
  SpoolDirectory(std::string path, UniqueFd fd, UniqueFd lock)
      : path_(std::move(path)), fd_(std::move(fd)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd fd_;
  UniqueFd lock_;
};

}  // namespace pyrometer
