// SPDX-License-Identifier: Apache-2.0
#include "export/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>

#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr mode_t kMode = 0644;
constexpr std::string_view kPrefix = ".pyrometer-";
constexpr size_t kDigits = 16;

}  // namespace

Result<TemporaryFile> TemporaryFile::Create(const std::string& directory) {
  std::random_device random;
  while (true) {
    std::string path = fmt::format("{}/{}{:08x}{:08x}", directory, kPrefix, random(), random());
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
    if (fd) return TemporaryFile(std::move(fd), std::move(path));
    if (errno != EEXIST) return SystemError(errno, directory);
  }
}

bool TemporaryFile::IsName(std::string_view name) {
  return name.size() == kPrefix.size() + kDigits && name.starts_with(kPrefix) &&
         name.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string_view::npos;
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<void> TemporaryFile::RenameTo(const std::string& path) && {
  if (::close(fd_.Release()) != 0) return SystemError(errno, path);
  if (::rename(path_.c_str(), path.c_str()) != 0) return SystemError(errno, path);
  path_.clear();
  return {};
}

Result<bool> TemporaryFile::RenameToNew(const std::string& path) && {
  if (::close(fd_.Release()) != 0) return SystemError(errno, path);
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return false;
    // A file system that does not know the flag: look first, as well as that goes.
    if (errno != EINVAL) return SystemError(errno, path);
    if (::access(path.c_str(), F_OK) == 0) return false;
    if (::rename(path_.c_str(), path.c_str()) != 0) return SystemError(errno, path);
  }
  path_.clear();
  return true;
}

}  // namespace pyrometer
