// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/debuginfod_child.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/unique_fd.h"
#include "debuginfod/confinement.h"
#include "debuginfod/download_cache.h"

namespace pyrometer {
namespace {

// A server that sends less than 100 KB within that is given up for the next one (debuginfod(8)).
constexpr const char* kSecondsWithoutProgress = "20";

// The functions of the library that are used.
class Library {
 public:
  Library() : handle_(::dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    Take("debuginfod_begin", begin_);
    Take("debuginfod_find_debuginfo", find_);
    Take("debuginfod_end", end_);
  }

  bool is_there() const { return begin_ != nullptr && find_ != nullptr && end_ != nullptr; }

  // Returns 0, or an errno. A client of its own for each question: what a server says to one is
  // forgotten with it.
  int Find(const DownloadRequest& request, UniqueFd& file) const {
    const std::unique_ptr<debuginfod_client, decltype(end_)> client(begin_(), end_);
    if (client == nullptr) return ENOMEM;
    char* name = nullptr;
    const int found =
        find_(client.get(), reinterpret_cast<const unsigned char*>(request.build_id.data()),
              static_cast<int>(request.size), &name);
    const std::unique_ptr<char, decltype(&std::free)> path(name, &std::free);
    if (found < 0) return -found;
    const UniqueFd writable(found);  // if it has just been written
    file.Reset(::open(path.get(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    return file ? 0 : errno;
  }

 private:
  template <typename Function>
  void Take(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  void* const handle_;  // for as long as the process lives
  decltype(&debuginfod_begin) begin_ = nullptr;
  decltype(&debuginfod_find_debuginfo) find_ = nullptr;
  decltype(&debuginfod_end) end_ = nullptr;
};

void SetEnvironment(const DownloadOptions& options) {
  if (!options.urls.empty()) ::setenv(DEBUGINFOD_URLS_ENV_VAR, options.urls.c_str(), 1);
  ::setenv(DEBUGINFOD_CACHE_PATH_ENV_VAR, options.directory.c_str(), 1);
  ::setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, std::to_string(options.most_bytes).c_str(), 1);
  ::setenv(DEBUGINFOD_TIMEOUT_ENV_VAR, kSecondsWithoutProgress, 1);
  ::unsetenv(DEBUGINFOD_PROGRESS_ENV_VAR);
  ::unsetenv(DEBUGINFOD_VERBOSE_ENV_VAR);
}

DownloadReply ReplyOf(int error) {
  if (error == 0) return {.what = DownloadReply::What::kFound};
  // A server's 404 or other refusal, or its answer that the file is larger than we take.
  const bool is_none = error == ENOENT || error == EFBIG;
  return {.what = is_none ? DownloadReply::What::kNone : DownloadReply::What::kFailed,
          .error = error};
}

}  // namespace

void ServeDownloads(const MessageSocket& socket, const DownloadOptions& options) {
  SetEnvironment(options);
  const Library library;
  DownloadReply first{.what = DownloadReply::What::kUnable};
  if (library.is_there()) {
    const bool is_confined = ConfineTo(options.directory, options.most_bytes).has_value();
    // Without capabilities even root needs rights to the directories above it.
    const bool can_write = ::access(options.directory.c_str(), R_OK | W_OK | X_OK) == 0;
    if (is_confined && can_write) first.what = DownloadReply::What::kReady;
    first.error = is_confined ? EACCES : EPERM;
  }
  if (!socket.Send(first) || first.what != DownloadReply::What::kReady) return;
  DownloadRequest request;
  while (socket.Receive(request)) {
    if (request.size > request.build_id.size()) return;
    UniqueFd file;
    const DownloadReply reply = ReplyOf(library.Find(request, file));
    if (!socket.Send(reply, file.get())) return;
    TrimDownloads(options.directory, options.most_kept_bytes);
  }
}

}  // namespace pyrometer
