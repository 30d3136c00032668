// SPDX-License-Identifier: Apache-2.0
#include "process/process_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "base/file_identity.h"
#include "base/system_error.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr size_t kStatusLimit = size_t{64} << 10;
constexpr size_t kCgroupsLimit = size_t{64} << 10;  // a dozen paths of at most 4 KiB

}  // namespace

Result<ProcessDirectory> ProcessDirectory::Open(const Procfs& procfs, Pid pid) {
  ASSIGN_OR_RETURN(UniqueFd fd, pyrometer::Open(procfs.Of(pid, ""), O_PATH | O_DIRECTORY));
  return ProcessDirectory(std::move(fd), pid);
}

Result<ProcessDirectory> ProcessDirectory::Duplicate() const {
  UniqueFd fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return SystemError(errno, "another descriptor of /proc/PID");
  return ProcessDirectory(std::move(fd), pid_);
}

Result<ProcStat> ProcessDirectory::Stat() const {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenAt(fd_.get(), "stat", O_RDONLY));
  std::array<char, 1024> text;  // some 350 bytes; more than this is not needed
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  if (size < 0) return SystemError(errno, "stat");
  return ParseProcStat(std::string_view(text.data(), static_cast<size_t>(size)));
}

Result<std::vector<Tid>> ProcessDirectory::Threads() const {
  ASSIGN_OR_RETURN(UniqueFd fd, OpenAt(fd_.get(), "task", O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), &::closedir);
  if (!directory) return SystemError(errno, "task");
  fd.Release();
  std::vector<Tid> threads;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    uint32_t tid = 0;
    const auto [next, error] = std::from_chars(name.data(), name.data() + name.size(), tid);
    if (error == std::errc() && next == name.data() + name.size()) threads.push_back(Tid(tid));
  }
  if (errno != 0) return SystemError(errno, "task");
  return threads;
}

Result<RootIdentity> ProcessDirectory::Root() const {
  ASSIGN_OR_RETURN(const UniqueFd root, OpenRoot());
  return IdentityOfRoot(root.get());
}

Result<RootIdentity> ProcessDirectory::IdentityOfRoot(int root) const {
  ASSIGN_OR_RETURN(const Inode inode, InodeOf(root));
  struct stat mounts {};
  if (::fstatat(fd_.get(), "ns/mnt", &mounts, 0) < 0) return SystemError(errno, "ns/mnt");
  return RootIdentity{inode.device, inode.number, mounts.st_ino};
}

Result<ProcStatus> ProcessDirectory::Status() const {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenAt(fd_.get(), "status", O_RDONLY));
  ASSIGN_OR_RETURN(const std::string status, ReadAll(fd.get(), kStatusLimit));
  return ParseProcStatus(status);
}

// The kernel makes the text of what it has in memory: unlike what the link leads to, reading it
// calls no file system and waits for no lock of the process's memory.
Result<std::string> ProcessDirectory::Executable() const {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlinkat(fd_.get(), "exe", path.data(), path.size());
  if (size < 0) return SystemError(errno, "exe");
  return std::string(WithoutDeleted(std::string_view(path.data(), static_cast<size_t>(size))));
}

Result<std::string> ProcessDirectory::Cgroups() const {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenAt(fd_.get(), "cgroup", O_RDONLY));
  return ReadAll(fd.get(), kCgroupsLimit);
}

Result<UniqueFd> ProcessDirectory::OpenRoot() const {
  return OpenAt(fd_.get(), "root", O_PATH | O_DIRECTORY);
}

}  // namespace pyrometer
