// SPDX-License-Identifier: Apache-2.0
#include "config/own_cache_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace pyrometer {
namespace {

bool IsOwnDirectory(const std::string& path) {
  struct stat about {};
  return path.starts_with('/') && ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
         about.st_uid == ::geteuid();
}

}  // namespace

std::string OwnCacheDirectory(const Environment& environment) {
  constexpr std::string_view kName = "/pyrometer";
  const std::string caches = environment("XDG_CACHE_HOME").value_or("");
  if (IsOwnDirectory(caches)) return caches + std::string(kName);
  const std::string home = environment("HOME").value_or("");
  return IsOwnDirectory(home) ? home + "/.cache" + std::string(kName) : "";
}

}  // namespace pyrometer
