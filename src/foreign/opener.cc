// SPDX-License-Identifier: Apache-2.0
#include "foreign/opener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/file_system.h"
#include "base/nameless_file.h"
#include "base/system_error.h"
#include "foreign/foreign_file.h"

namespace pyrometer {
namespace {

constexpr size_t kCopyStep = size_t{256} << 10;
// The kernel gives a page of a text at a time.
constexpr size_t kTextStep = 4096;

class Opener {
 public:
  Opener(MessageSocket socket, FileOperations& operations)
      : socket_(std::move(socket)), operations_(operations) {}

  // Until the other end is closed.
  void Run() {
    OpenerRequest request;
    while (Result<UniqueFd> attached = socket_.Receive(request)) {
      request.path.back() = '\0';
      if (request.what != OpenerRequest::What::kCopy) opened_.Reset();
      if (!Answer(Do(request, attached->get()))) return;
      found_.Reset();
      attached->Reset();
      if (!keeps_) opened_.Reset();
      if (!socket_.Send(OpenerReply{.what = OpenerReply::What::kFree})) return;
    }
  }

 private:
  Result<OpenerReply> Do(const OpenerRequest& request, int attached) {
    keeps_ = false;
    switch (request.what) {
      case OpenerRequest::What::kOpen:
        return Open(attached);
      case OpenerRequest::What::kLookUp: {
        ASSIGN_OR_RETURN(found_, operations_.LookUp(attached, request.path.data(), request.flags));
        return OpenerReply{.what = OpenerReply::What::kFile};
      }
      case OpenerRequest::What::kRead: {
        ASSIGN_OR_RETURN(found_, operations_.ReadText(attached, request.path.data(), request.most));
        return OpenerReply{.what = OpenerReply::What::kFile};
      }
      case OpenerRequest::What::kFollow: {
        ASSIGN_OR_RETURN(found_, operations_.Follow(attached, request.path.data()));
        return OpenerReply{.what = OpenerReply::What::kFile};
      }
      case OpenerRequest::What::kCopy:
        RETURN_IF_ERROR(operations_.Copy(opened_.get(), attached));
        return OpenerReply{.what = OpenerReply::What::kCopied};
    }
    return Fail(ErrorCode::kInternal, "an unknown request");
  }

  Result<OpenerReply> Open(int path_fd) {
    ASSIGN_OR_RETURN(opened_, operations_.Open(path_fd));
    if (operations_.IsLocal(opened_.get())) {
      found_ = std::move(opened_);
      return OpenerReply{.what = OpenerReply::What::kFile};
    }
    struct stat status {};
    if (::fstat(opened_.get(), &status) < 0) return SystemError(errno, "stat");
    keeps_ = true;
    return OpenerReply{.what = OpenerReply::What::kRemote,
                       .size = static_cast<uint64_t>(status.st_size)};
  }

  bool Answer(const Result<OpenerReply>& reply) {
    if (reply) return socket_.Send(*reply, found_.get()).has_value();
    return socket_.Send(OpenerReply{.error = reply.error().code()}).has_value();
  }

  const MessageSocket socket_;
  FileOperations& operations_;
  UniqueFd opened_;
  UniqueFd found_;      // to be attached
  bool keeps_ = false;  // `opened_` for the next request
};

}  // namespace

Result<UniqueFd> FileOperations::Open(int path_fd) {
  const std::string name = fmt::format("/proc/self/fd/{}", path_fd);
  struct stat status {};
  if (::fstat(path_fd, &status) < 0) return SystemError(errno, name);
  // Opening anything else can do anything.
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  UniqueFd file(::open(name.c_str(), kForeignFlags));
  if (!file) return SystemError(errno, name);
  return file;
}

bool FileOperations::IsLocal(int fd) {
  return IsOnLocalFileSystem(fd);
}

Result<UniqueFd> FileOperations::LookUp(int root_fd, const std::string& path, int flags) {
  return FindInRoot(root_fd, path, flags);
}

Result<void> FileOperations::Copy(int from, int to) {
  std::vector<std::byte> buffer(kCopyStep);
  off_t at = 0;
  while (true) {
    const ssize_t size = ::pread(from, buffer.data(), buffer.size(), at);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return SystemError(errno, "reading a file to copy");
    if (size == 0) return {};
    const auto bytes = std::span(buffer).first(static_cast<size_t>(size));
    const bool is_hole = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    const ssize_t written = is_hole ? 0 : ::pwrite(to, bytes.data(), bytes.size(), at);
    at += size;
    if (is_hole ? ::ftruncate(to, at) != 0 : written != size) {
      return SystemError(errno, "writing a copy");
    }
  }
}

Result<UniqueFd> FileOperations::ReadText(int directory_fd, const std::string& name,
                                          uint64_t most) {
  ASSIGN_OR_RETURN(const UniqueFd file, OpenAt(directory_fd, name, O_RDONLY));
  ASSIGN_OR_RETURN(NamelessFile text, NamelessFile::Open({}));
  std::array<char, kTextStep> buffer;
  while (most > 0) {
    const ssize_t size = ::read(file.get(), buffer.data(), std::min<uint64_t>(kTextStep, most));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return SystemError(errno, name);
    if (size == 0) break;
    most -= static_cast<uint64_t>(size);
    RETURN_IF_ERROR(WriteAll(text.fd.get(), {buffer.data(), static_cast<size_t>(size)}));
  }
  if (::lseek(text.fd.get(), 0, SEEK_SET) != 0) return SystemError(errno, name);
  return std::move(text.fd);
}

Result<UniqueFd> FileOperations::Follow(int directory_fd, const std::string& name) {
  return OpenAt(directory_fd, name, O_PATH);
}

void ServeOpener(MessageSocket socket, FileOperations& operations) {
  Opener(std::move(socket), operations).Run();
}

}  // namespace pyrometer
