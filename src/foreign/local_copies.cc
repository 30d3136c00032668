// SPDX-License-Identifier: Apache-2.0
#include "foreign/local_copies.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/system_error.h"

#include <cerrno>

namespace pyrometer {
namespace {

struct flock WholeFile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Such a lock lasts until the last duplicate of the descriptor is closed.
bool Lock(int fd) {
  struct flock lock = WholeFile();
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool IsLocked(int fd) {
  struct flock lock = WholeFile();
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace

// Forgets what nobody has open any more; the bytes of the rest.
uint64_t LocalCopies::Sweep() {
  uint64_t bytes = 0;
  std::erase_if(copies_, [&](const Copy& copy) {
    const bool is_open = IsLocked(copy.witness.get());
    if (is_open) bytes += copy.size;
    return !is_open;
  });
  return bytes;
}

Result<UniqueFd> LocalCopies::Make(uint64_t size) {
  const std::scoped_lock lock(mutex_);
  ASSIGN_OR_RETURN(NamelessFile file, NamelessFile::Open(options_.directories));
  const uint64_t most = file.in_memory ? options_.most_in_memory : options_.most_on_disk;
  const uint64_t taken = Sweep();
  if (taken > most || size > most - taken || !file.LeavesOnDisk(options_.left_on_disk + size)) {
    return Fail(ErrorCode::kExhausted, "no room for a copy of {} bytes", size);
  }
  ASSIGN_OR_RETURN(UniqueFd witness, Open(fmt::format("/proc/self/fd/{}", file.fd.get()), O_RDWR));
  if (!Lock(file.fd.get())) return SystemError(errno, "locking a copy");
  copies_.push_back({std::move(witness), size});
  return std::move(file.fd);
}

uint64_t LocalCopies::bytes() {
  const std::scoped_lock lock(mutex_);
  return Sweep();
}

}  // namespace pyrometer
