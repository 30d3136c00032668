// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/procfs.h"

namespace pyrometer {

// A directory of its own for a test, to stand for /proc, /sys or a cgroup file system.
class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = testing::TempDir() + "/pyrometer_tree_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root_ = std::filesystem::canonical(name);
  }
  ~TemporaryTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;

  std::string Path(std::string_view name = "") const { return (root_ / name).string(); }

  void Directory(std::string_view name) { std::filesystem::create_directories(root_ / name); }

  void File(std::string_view name, std::string_view content) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    EXPECT_TRUE(WriteAll(fd.get(), content).has_value()) << path;
  }

  void Link(std::string_view name, std::string_view target) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }

  Procfs AsProcfs() const { return {.root = Path("proc"), .sys = Path("sys")}; }

 private:
  std::filesystem::path root_;
};

}  // namespace pyrometer
