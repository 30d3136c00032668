// SPDX-License-Identifier: Apache-2.0
#include "base/nameless_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "base/file_system.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

// Invalid if there can be none.
UniqueFd NamelessFileIn(const std::string& directory) {
  const Result<UniqueFd> at = Open(directory, O_PATH | O_DIRECTORY);
  if (!at || !IsOnLocalDisk(at->get())) return {};
  // Not O_TMPFILE: overlay file systems have learned that only lately.
  std::string name = directory + "/pyrometer-XXXXXX";
  UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid() || ::unlink(name.c_str()) != 0) return {};
  return file;
}

}  // namespace

Result<NamelessFile> NamelessFile::Open(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    if (UniqueFd fd = NamelessFileIn(directory)) return NamelessFile{.fd = std::move(fd)};
  }
  UniqueFd fd(::memfd_create("pyrometer", MFD_CLOEXEC));
  if (!fd.valid()) return SystemError(errno, "making a file in memory");
  return NamelessFile{.fd = std::move(fd), .in_memory = true};
}

bool NamelessFile::LeavesOnDisk(uint64_t bytes) const {
  return in_memory || pyrometer::LeavesOnDisk(fd.get(), bytes);
}

}  // namespace pyrometer
