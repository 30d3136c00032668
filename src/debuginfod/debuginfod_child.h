// SPDX-License-Identifier: Apache-2.0
// The process that speaks with debuginfod servers, and what it is asked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/message_socket.h"
#include "pyrometer/ids.h"

namespace pyrometer {

struct DownloadRequest {
  std::array<std::byte, BuildId::kMaxSize> build_id{};
  uint32_t size = 0;  // of that, in bytes
};
struct DownloadReply {
  enum class What : uint32_t {
    kReady,   // the first message: it can be asked
    kUnable,  // likewise: it cannot, and ends; for want of the library if `error` is 0, of rights
              // to the directory if it is EACCES
    kFound,   // attached: the file
    kNone,    // no server has it, or it is too large
    kFailed,  // with errno `error`
  };
  What what = What::kFailed;
  int32_t error = 0;
};

struct DownloadOptions {
  std::string urls;                         // separated by blanks; "": those of DEBUGINFOD_URLS
  std::string directory;                    // of our own, where downloads are kept
  uint64_t most_bytes = uint64_t{1} << 30;  // of one file
  uint64_t most_kept_bytes = uint64_t{4} << 30;  // of all
};

// Answers the requests that come by `socket`, until its other end is closed, with libdebuginfod.
// That is loaded here, so that no other process has it, or the libraries that it takes along.
// REQUIRES: a process of its own, with one thread.
void ServeDownloads(const MessageSocket& socket, const DownloadOptions& options);

}  // namespace pyrometer
