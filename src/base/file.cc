// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>

#include "base/system_error.h"

namespace pyrometer {

Result<UniqueFd> Open(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd) return SystemError(errno, path);
  return fd;
}

Result<UniqueFd> OpenAt(int directory, const std::string& path, int flags) {
  UniqueFd fd(::openat(directory, path.c_str(), flags | O_CLOEXEC));
  if (!fd) return SystemError(errno, path);
  return fd;
}

// Most files read whole are of /proc and have a few hundred bytes: no large buffer is cleared, or
// asked of the kernel, for them.
Result<std::string> ReadAll(int fd, size_t limit) {
  std::array<char, size_t{16} << 10> piece;  // not initialized
  std::string bytes;
  while (true) {
    if (bytes.size() > limit) return Fail(ErrorCode::kExhausted, "larger than {} bytes", limit);
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, "read");
    if (n == 0) break;
    bytes.append(piece.data(), static_cast<size_t>(n));
  }
  return bytes;
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  ASSIGN_OR_RETURN(const UniqueFd fd, Open(path, O_RDONLY));
  Result<std::string> bytes = ReadAll(fd.get(), limit);
  if (!bytes) return std::move(bytes).error().With(path);
  return bytes;
}

Result<void> ReadAt(int fd, uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
      return Fail(ErrorCode::kMalformed, "offset {:#x} is beyond any file", offset);
    }
    const ssize_t n = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, "pread");
    if (n == 0) return Fail(ErrorCode::kMalformed, "the file ends before offset {:#x}", offset);
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Result<void> WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

void WriteMessage(int fd, std::string_view message) {
  (void)WriteAll(fd, message);
}

}  // namespace pyrometer
