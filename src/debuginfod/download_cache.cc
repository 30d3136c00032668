// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/download_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/system_error.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnersOnly = 0700;
constexpr std::time_t kLongestDownload = 3600;  // seconds
// libdebuginfod writes "debuginfo.XXXXXX" and renames it once it is whole.
constexpr std::string_view kBeingWritten = "debuginfo.";

struct Download {
  fs::path path;
  uint64_t bytes = 0;
  std::time_t used = 0;
};

// Of each build id's directory, the regular files.
std::vector<Download> DownloadsIn(const std::string& path) {
  std::vector<Download> downloads;
  std::error_code error;
  for (fs::directory_iterator id(path, error), end; !error && id != end; id.increment(error)) {
    std::error_code of_id;
    if (!id->is_directory(of_id) || id->is_symlink(of_id)) continue;
    for (fs::directory_iterator file(id->path(), of_id); !of_id && file != end;
         file.increment(of_id)) {
      struct stat status {};
      if (::lstat(file->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      downloads.push_back({.path = file->path(),
                           .bytes = static_cast<uint64_t>(status.st_blocks) * 512,
                           .used = std::max(status.st_atime, status.st_mtime)});
    }
  }
  return downloads;
}

void Remove(const fs::path& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
  fs::remove(file.parent_path(), ignored);  // if it was the last one
}

}  // namespace

Result<void> PrepareDownloadDirectory(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), kOwnersOnly) != 0 && errno != EEXIST) return SystemError(errno, path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return SystemError(errno, path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(ErrorCode::kPermission,
                "{} is not a directory of ours alone: remove it, or choose another", path);
  }
  return {};
}

void TrimDownloads(const std::string& path, uint64_t most_bytes) {
  std::vector<Download> downloads = DownloadsIn(path);
  const std::time_t now = std::time(nullptr);
  std::erase_if(downloads, [&](const Download& download) {
    // That a server has no file is noted as an empty one.
    const bool is_none =
        download.bytes == 0 || download.path.filename().string().starts_with(kBeingWritten);
    const bool is_old = is_none && download.used + kLongestDownload < now;
    if (is_old) Remove(download.path);
    return is_old;
  });
  std::ranges::sort(downloads, {}, &Download::used);
  uint64_t total = 0;
  for (const Download& download : downloads) total += download.bytes;
  for (const Download& download : downloads) {
    if (total <= most_bytes) break;
    Remove(download.path);
    total -= download.bytes;
  }
}

}  // namespace pyrometer
