// SPDX-License-Identifier: Apache-2.0
#include "export/spool_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>

#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr const char* kLock = "lock";
constexpr const char* kUnfinished = "unfinished";  // only the lock's holder writes
constexpr std::string_view kSpoolSuffix = ".parcels";
constexpr size_t kNumberDigits = 16;

std::string NameOf(uint64_t number) {
  return fmt::format("{:016}{}", number, kSpoolSuffix);
}

std::optional<uint64_t> NumberOf(std::string_view name) {
  if (name.size() != kNumberDigits + kSpoolSuffix.size() || !name.ends_with(kSpoolSuffix))
    return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + kNumberDigits, number);
  if (error != std::errc() || end != name.data() + kNumberDigits) return std::nullopt;
  return number;
}

Result<UniqueFd> OpenDirectory(const std::string& path) {
  std::error_code ignored;  // what is wrong is said by what follows
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return SystemError(errno, path);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return SystemError(errno, path);
  struct stat info {};
  // Stacks and labels are nobody else's business.
  if (::fstat(fd.get(), &info) == 0 && (info.st_mode & 077) != 0 && ::fchmod(fd.get(), 0700) != 0) {
    return SystemError(errno, path);
  }
  return fd;
}

std::optional<struct stat> RegularFile(int directory, const char* name) {
  struct stat info {};
  if (::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
    return std::nullopt;
  }
  return info;
}

// Oldest first.
Result<std::vector<SpoolFileFacts>> FilesIn(int spool, const std::string& path) {
  // A description of its own, so that it is read from the beginning.
  UniqueFd fd(::openat(spool, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return SystemError(errno, path);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), ::closedir);
  if (!directory) return SystemError(errno, path);
  std::ignore = fd.Release();
  std::vector<SpoolFileFacts> files;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::optional<uint64_t> number = NumberOf(entry->d_name);
    if (!number) continue;
    const std::optional<struct stat> info = RegularFile(spool, entry->d_name);
    if (!info) continue;
    files.push_back({.number = *number,
                     .bytes = static_cast<uint64_t>(info->st_size),
                     .written = std::chrono::system_clock::from_time_t(info->st_mtim.tv_sec)});
  }
  std::ranges::sort(files, {}, &SpoolFileFacts::number);
  return files;
}

}  // namespace

std::string SpoolNameOf(std::string_view name) {
  std::string safe;
  for (const char c : name) {
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    safe += stays ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return safe.empty() ? "%" : safe;
}

Result<SpoolDirectory> SpoolDirectory::Open(const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd fd, OpenDirectory(path));
  UniqueFd lock(::openat(fd.get(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return SystemError(errno, fmt::format("{}/{}", path, kLock));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError(errno, fmt::format("{}/{}: flock", path, kLock));
    return Fail(ErrorCode::kExhausted, "{}: another process uses this spool", path);
  }
  if (RegularFile(fd.get(), kUnfinished)) ::unlinkat(fd.get(), kUnfinished, 0);
  return SpoolDirectory(path, std::move(fd), std::move(lock));
}

Result<std::vector<SpoolFileFacts>> SpoolDirectory::Look(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return SystemError(errno, path);
  if (!RegularFile(fd.get(), kLock)) {
    return Fail(ErrorCode::kNotFound, "{}: not a spool's directory", path);
  }
  return FilesIn(fd.get(), path);
}

Result<std::vector<uint64_t>> SpoolDirectory::List() const {
  ASSIGN_OR_RETURN(const std::vector<SpoolFileFacts> files, FilesIn(fd_.get(), path_));
  std::vector<uint64_t> numbers;
  numbers.reserve(files.size());
  for (const SpoolFileFacts& file : files) numbers.push_back(file.number);
  return numbers;
}

Result<SpoolFile> SpoolDirectory::OpenFile(uint64_t number) const {
  const std::string name = NameOf(number);
  // Should a FIFO have taken its place: opening must not wait.
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return SystemError(errno, fmt::format("{}/{}", path_, name));
  Result<SpoolFile> file = SpoolFile::Open(std::move(fd));
  if (!file) return std::move(file).error().With(fmt::format("{}/{}", path_, name));
  return file;
}

Result<void> SpoolDirectory::Write(uint64_t number, std::span<const Parcel* const> parcels) const {
  const std::string name = NameOf(number);
  const auto failed = [&](Error error) {
    ::unlinkat(fd_.get(), kUnfinished, 0);
    return std::move(error).With(fmt::format("{}/{}", path_, name));
  };
  UniqueFd fd(
      ::openat(fd_.get(), kUnfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return failed(SystemError(errno, "open"));
  Result<void> written = SpoolFile::Write(fd.get(), parcels);
  if (!written) return failed(std::move(written).error());
  if (::fsync(fd.get()) != 0) return failed(SystemError(errno, "fsync"));
  if (::close(fd.Release()) != 0) return failed(SystemError(errno, "close"));
  if (::renameat(fd_.get(), kUnfinished, fd_.get(), name.c_str()) != 0) {
    return failed(SystemError(errno, "rename"));
  }
  if (::fsync(fd_.get()) != 0) {
    const Error error = SystemError(errno, "fsync of the directory");
    ::unlinkat(fd_.get(), name.c_str(), 0);
    return failed(error);
  }
  return {};
}

Result<void> SpoolDirectory::Remove(uint64_t number) const {
  const std::string name = NameOf(number);
  if (::unlinkat(fd_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return SystemError(errno, fmt::format("{}/{}", path_, name));
  }
  return {};
}

Result<void> SpoolDirectory::RemoveItself() const {
  ::unlinkat(fd_.get(), kLock, 0);
  if (::rmdir(path_.c_str()) != 0) return SystemError(errno, path_);
  return {};
}

bool SpoolDirectory::IsInPlace() const {
  struct stat mine {};
  struct stat there {};
  return ::fstat(fd_.get(), &mine) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

}  // namespace pyrometer
