// SPDX-License-Identifier: Apache-2.0
#include "unwind/function_bounds.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

// Where functions begin as readelf reads .eh_frame; without those that the linker has left out.
std::set<uint64_t> BeginningsByReadelf(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen(fmt::format("readelf --debug-dump=frames '{}' 2>/dev/null", path).c_str(), "r"),
      ::pclose);
  std::set<uint64_t> beginnings;
  char line[4096];
  bool in_section = false;
  while (std::fgets(line, sizeof(line), pipe.get()) != nullptr) {
    const std::string text = line;
    if (text.starts_with("Contents of the ")) in_section = text.find(" .eh_frame ") != text.npos;
    const size_t at = text.find(" FDE cie=");
    const size_t pc = text.find(" pc=", at == text.npos ? 0 : at);
    if (!in_section || at == text.npos || pc == text.npos) continue;
    char* end = nullptr;
    const uint64_t begin = std::strtoull(text.c_str() + pc + 4, &end, 16);
    if (std::strtoull(end + 2, nullptr, 16) > begin) beginnings.insert(begin);
  }
  return beginnings;
}

// How many functions the file has; every beginning is one of readelf's, and none is missing.
size_t Compare(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const Result<ElfFile> elf = ElfFile::Open(fd.get());
  if (!elf) return 0;
  const std::set<uint64_t> truth = BeginningsByReadelf(path);
  std::set<uint64_t> found;
  uint64_t end = 0;
  for (const FunctionBounds& function : ReadFunctionBounds(*elf)) {
    EXPECT_GE(function.begin, end) << path;
    EXPECT_GT(function.end, function.begin) << path;
    end = function.end;
    found.insert(function.begin);
  }
  EXPECT_EQ(found, truth) << path;
  return found.size();
}

// Of PYROMETER_SWEEP, a directory, every file.
std::vector<std::string> Files() {
  const char* const directory = std::getenv("PYROMETER_SWEEP");
  if (directory == nullptr) {
    return {"/usr/bin/bash", "/usr/bin/dash", "/usr/bin/tar", "/usr/bin/readelf"};
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  return files;
}

TEST(FunctionBounds, AgreeWithReadelf) {
  size_t files = 0;
  size_t functions = 0;
  for (const std::string& path : Files()) {
    const size_t more = Compare(path);
    files += more > 0 ? 1 : 0;
    functions += more;
  }
  fmt::print("{} files, {} functions\n", files, functions);
  EXPECT_GT(functions, 2000U);
}

}  // namespace
}  // namespace pyrometer
