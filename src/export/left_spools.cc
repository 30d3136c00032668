// SPDX-License-Identifier: Apache-2.0
#include "export/left_spools.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "export/spool_directory.h"

namespace pyrometer {
namespace {

std::vector<std::string> DirectoriesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (SpoolDirectory::IsOne(entry.path())) names.push_back(entry.path().filename());
  }
  return names;
}

LeftSpool Sweep(std::string name, SpoolDirectory spool, std::chrono::nanoseconds max_age) {
  LeftSpool left{.name = std::move(name)};
  const auto oldest = std::chrono::system_clock::now() - max_age;
  for (const uint64_t number : spool.List().value_or(std::vector<uint64_t>())) {
    const auto written = spool.WrittenAt(number);
    if (written && *written < oldest && spool.Remove(number)) {
      ++left.removed;
    } else {
      ++left.waiting;
    }
  }
  if (left.waiting == 0) std::move(spool).RemoveEmpty();
  return left;
}

}  // namespace

std::vector<LeftSpool> SweepLeftSpools(const std::string& directory,
                                       const std::vector<std::string>& kept,
                                       std::chrono::nanoseconds max_age) {
  std::vector<LeftSpool> all;
  for (std::string& name : DirectoriesIn(directory)) {
    if (std::ranges::find(kept, name) != kept.end()) continue;
    Result<SpoolDirectory> spool = SpoolDirectory::Open(fmt::format("{}/{}", directory, name));
    if (spool) all.push_back(Sweep(std::move(name), *std::move(spool), max_age));
  }
  return all;
}

}  // namespace pyrometer
