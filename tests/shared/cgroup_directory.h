// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace pyrometer {

// A directory of a cgroup2 file system, removed when this goes and its processes have ended.
class CgroupDirectory {
 public:
  explicit CgroupDirectory(std::string path)
      : path_(std::move(path)), is_made_(::mkdir(path_.c_str(), 0755) == 0) {}
  ~CgroupDirectory() {
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (is_made_ && ::rmdir(path_.c_str()) != 0 && errno == EBUSY &&
           std::chrono::steady_clock::now() < late) {
      std::this_thread::yield();
    }
  }
  CgroupDirectory(const CgroupDirectory&) = delete;
  CgroupDirectory& operator=(const CgroupDirectory&) = delete;

  bool is_made() const { return is_made_; }
  const std::string& path() const { return path_; }
  uint64_t id() const {
    struct stat status {};
    ::stat(path_.c_str(), &status);
    return status.st_ino;
  }
  // False if the process is not there, or may not be in here.
  bool Add(pid_t pid) const {
    std::ofstream procs(path_ + "/cgroup.procs");
    procs << pid << std::flush;
    return procs.good();
  }

 private:
  const std::string path_;
  const bool is_made_;
};

}  // namespace pyrometer
