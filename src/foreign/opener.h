// SPDX-License-Identifier: Apache-2.0
// The processes that open files for OpenerPool, and what they are asked.
#pragma once

#include <array>
#include <climits>
#include <cstdint>
#include <string>

#include "base/message_socket.h"
#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// To a opener. It answers with a OpenerReply, then closes what it has opened, which may hang as
// well, and says so with another (kFree).
struct OpenerRequest {
  enum class What : uint32_t {
    kOpen,    // attached: O_PATH of the file
    kLookUp,  // attached: O_PATH of the root directory
    kRead,    // attached: O_PATH of a directory of /proc; at most `most` bytes
    kFollow,  // the same
    kCopy,    // attached: the file to write to; what the last kOpen, just before, was about
  };
  What what = What::kOpen;
  int32_t flags = 0;
  uint64_t most = 0;
  std::array<char, PATH_MAX> path{};  // NUL-terminated
};
struct OpenerReply {
  enum class What : uint32_t {
    kFile,    // attached: what was asked for
    kRemote,  // `size` bytes that may hang: to be copied
    kCopied,  // all of it
    kFailed,  // for the reason `error`
    kFree,
  };
  What what = What::kFailed;
  ErrorCode error = ErrorCode::kIo;
  uint64_t size = 0;
};

// What a opener does to file systems and /proc; a test's hangs or finds everything remote.
class FileOperations {
 public:
  virtual ~FileOperations() = default;

  // The regular file that `path_fd` is.
  virtual Result<UniqueFd> Open(int path_fd);
  virtual bool IsLocal(int fd);
  virtual Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags);
  virtual Result<void> Copy(int from, int to);
  // As ForeignFiles::ReadText() and Follow().
  virtual Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most);
  virtual Result<UniqueFd> Follow(int directory_fd, const std::string& name);
};

// Serves `socket` until its other end is closed. REQUIRES: a process of its own, with one thread.
void ServeOpener(MessageSocket socket, FileOperations& operations);

}  // namespace pyrometer
