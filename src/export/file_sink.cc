// SPDX-License-Identifier: Apache-2.0
#include "export/file_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/system_error.h"
#include "export/temporary_file.h"

namespace pyrometer {
namespace {

constexpr mode_t kFileMode = 0644;

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash == 0 ? 1 : slash);
}

enum class Target { kReplaceable, kInPlace };

// How `path` has to be written, by what is there now.
Result<Target> TargetAt(const std::string& path) {
  struct stat link {};
  if (::lstat(path.c_str(), &link) != 0) {
    if (errno != ENOENT) return SystemError(errno, path);
    return Target::kReplaceable;
  }
  struct stat target = link;
  // A link that points nowhere yet is as good as a file.
  if (S_ISLNK(link.st_mode) && ::stat(path.c_str(), &target) != 0 && errno != ENOENT) {
    return SystemError(errno, path);
  }
  if (S_ISDIR(target.st_mode)) return Fail(ErrorCode::kInvalid, "{}: is a directory", path);
  return S_ISREG(link.st_mode) ? Target::kReplaceable : Target::kInPlace;
}

Result<void> WriteTo(int fd, std::string_view bytes, const std::string& path) {
  Result<void> written = WriteAll(fd, bytes);
  if (!written) return std::move(written).error().With(path);
  return {};
}

}  // namespace

Result<FileSink> FileSink::Open(std::string path) {
  if (path.empty()) return Fail(ErrorCode::kInvalid, "an output needs a file name");
  const std::string directory = DirectoryOf(path);
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) {
    return SystemError(errno, fmt::format("{}: directory {}", path, directory));
  }
  ASSIGN_OR_RETURN(const Target target, TargetAt(path));
  if (path.ends_with('/')) return Fail(ErrorCode::kInvalid, "{}: is a directory", path);
  const bool in_place = target == Target::kInPlace;
  const std::string& written = in_place ? path : directory;
  // By the effective user, as open(2) will decide; /proc/self/fd links have no modes to ask for.
  if (::faccessat(AT_FDCWD, written.c_str(), in_place ? W_OK : W_OK | X_OK, AT_EACCESS) != 0 &&
      !(in_place && errno == ENOENT)) {
    return SystemError(errno, in_place ? path : fmt::format("{}: directory {}", path, directory));
  }
  return FileSink(std::move(path));
}

Result<void> FileSink::Write(std::string_view bytes) {
  // Asked anew each time: much may have happened since Open.
  ASSIGN_OR_RETURN(const Target target, TargetAt(path_));
  return target == Target::kReplaceable ? Replace(bytes) : WriteInPlace(bytes);
}

Result<void> FileSink::Replace(std::string_view bytes) const {
  ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::Create(DirectoryOf(path_)));
  RETURN_IF_ERROR(WriteTo(file.fd(), bytes, path_));
  return std::move(file).RenameTo(path_);
}

Result<void> FileSink::WriteInPlace(std::string_view bytes) const {
  const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode));
  if (!fd) return SystemError(errno, path_);
  Result<void> written = WriteTo(fd.get(), bytes, path_);
  // Fails for what has no length (a pipe, a device), where there is nothing to take back.
  if (!written) std::ignore = ::ftruncate(fd.get(), 0);
  return written;
}

}  // namespace pyrometer
