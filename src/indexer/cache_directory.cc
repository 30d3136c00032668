// SPDX-License-Identifier: Apache-2.0
#include "indexer/cache_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>

#include "base/file_system.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr const char* kName = "symbols";
constexpr std::string_view kUnfinished = "unfinished-";
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// `at` and what is in it.
Result<UniqueFd> OpenOwnDirectory(int at, const char* name, const std::string& path) {
  if (::mkdirat(at, name, S_IRWXU) != 0 && errno != EEXIST) return SystemError(errno, path);
  UniqueFd fd(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  // A link is ENOTDIR to O_DIRECTORY.
  if (!fd && (errno == ELOOP || errno == ENOTDIR)) {
    return Fail(ErrorCode::kPermission, "{}: not a directory", path);
  }
  if (!fd || ::fstat(fd.get(), &about) != 0) return SystemError(errno, path);
  if (about.st_uid != ::geteuid()) {
    return Fail(ErrorCode::kPermission, "{}: another user's; this is user {}", path, ::geteuid());
  }
  return fd;
}

std::string UnfinishedName() {
  uint64_t number = 0;
  // Should there be none: the name is then taken, or not.
  std::ignore = ::getrandom(&number, sizeof(number), 0);
  return fmt::format("{}{:016x}", kUnfinished, number);
}

std::optional<struct stat> RegularFile(int directory, const std::string& name) {
  struct stat about {};
  if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(about.st_mode)) {
    return std::nullopt;
  }
  return about;
}

}  // namespace

Result<CacheDirectory> CacheDirectory::Open(std::string parent) {
  // Behind a slash, a link would be followed.
  while (parent.size() > 1 && parent.ends_with('/')) parent.pop_back();
  std::error_code ignored;  // what is wrong is said by what follows
  std::filesystem::create_directories(std::filesystem::path(parent).parent_path(), ignored);
  ASSIGN_OR_RETURN(const UniqueFd above, OpenOwnDirectory(AT_FDCWD, parent.c_str(), parent));
  const std::string path = fmt::format("{}/{}", parent, kName);
  ASSIGN_OR_RETURN(UniqueFd fd, OpenOwnDirectory(above.get(), kName, path));
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return SystemError(errno, path);
  if ((about.st_mode & kOthers) != 0) {
    return Fail(ErrorCode::kPermission, "{}: others may open it; its mode has to be 0700", path);
  }
  if (!IsOnLocalFileSystem(fd.get())) {
    return Fail(ErrorCode::kUnsupported, "{}: not on a local file system", path);
  }
  CacheDirectory directory(std::move(fd), about.st_dev);
  directory.RemoveUnfinished();
  return directory;
}

// Who still writes one has locked it. (Between making and locking it is taken for left over, too:
// then that writer fails.)
void CacheDirectory::RemoveUnfinished() const {
  ForEachName([this](const std::string& name) {
    if (!name.starts_with(kUnfinished)) return;
    const UniqueFd file(
        ::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
    ::unlinkat(fd_.get(), name.c_str(), 0);
  });
}

Result<UniqueFd> CacheDirectory::OpenFile(const std::string& name) const {
  // Should a FIFO have taken its place: opening must not wait.
  UniqueFd file(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ELOOP) return Fail(ErrorCode::kMalformed, "{}: a symbolic link", name);
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return SystemError(errno, name);
  if (!S_ISREG(about.st_mode) || about.st_uid != ::geteuid() || (about.st_mode & kOthers) != 0) {
    return Fail(ErrorCode::kMalformed, "{}: not a file that only this user may open", name);
  }
  return file;
}

Result<void> CacheDirectory::Replace(const std::string& name,
                                     const std::function<Result<void>(int fd)>& write) const {
  const std::string unfinished = UnfinishedName();
  const UniqueFd file(::openat(fd_.get(), unfinished.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                               S_IRUSR | S_IWUSR));
  if (!file) return SystemError(errno, unfinished);
  ::flock(file.get(), LOCK_EX | LOCK_NB);
  Result<void> written = write(file.get());
  if (written && ::renameat(fd_.get(), unfinished.c_str(), fd_.get(), name.c_str()) != 0) {
    written = SystemError(errno, name);
  }
  if (!written) ::unlinkat(fd_.get(), unfinished.c_str(), 0);
  return written;
}

bool CacheDirectory::Remove(const std::string& name) const {
  return ::unlinkat(fd_.get(), name.c_str(), 0) == 0;
}

void CacheDirectory::MarkUsed(int fd) const {
  ::futimens(fd, nullptr);
}

std::vector<CacheDirectory::File> CacheDirectory::List() const {
  std::vector<File> files;
  ForEachName([&](const std::string& name) {
    if (name.starts_with(kUnfinished)) return;
    const std::optional<struct stat> about = RegularFile(fd_.get(), name);
    if (!about) return;
    files.push_back(
        {.name = name,
         .bytes = static_cast<uint64_t>(about->st_size),
         .used_ns = about->st_mtim.tv_sec * int64_t{1'000'000'000} + about->st_mtim.tv_nsec});
  });
  return files;
}

bool CacheDirectory::Leaves(uint64_t bytes) const {
  return LeavesOnDisk(fd_.get(), bytes);
}

void CacheDirectory::ForEachName(const std::function<void(const std::string& name)>& use) const {
  // A description of its own, so that it is read from the beginning.
  UniqueFd fd(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), ::closedir);
  if (!directory) return;
  std::ignore = fd.Release();
  while (const dirent* entry = ::readdir(directory.get())) use(entry->d_name);
}

}  // namespace pyrometer
