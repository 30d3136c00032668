// SPDX-License-Identifier: Apache-2.0
#include "metadata/cgroup_mounts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace pyrometer {
namespace {

// mountinfo writes space, tab, newline and backslash as three octal digits after a backslash.
std::string Unescape(std::string_view text) {
  std::string plain;
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::all_of(text.begin() + i + 1, text.begin() + i + 4, is_octal)) {
      plain += static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 |
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// The options of the hierarchy without those of its file system: "rw,cpu,cpuacct" -> "cpu,cpuacct".
std::string Controllers(std::string_view super_options) {
  constexpr std::array<std::string_view, 7> kNoControllers = {
      "rw", "ro", "xattr", "noprefix", "clone_children", "seclabel", "cpuset_v2_mode"};
  std::string controllers;
  for (const std::string_view option : Split(super_options, ',')) {
    if (std::ranges::find(kNoControllers, option) != kNoControllers.end() ||
        option.starts_with("release_agent=")) {
      continue;
    }
    if (!controllers.empty()) controllers += ',';
    controllers += option;
  }
  return controllers;
}

// proc_pid_mountinfo(5): "36 35 98:0 /root /mount/point options [optional...] - type source super".
std::optional<CgroupMount> ParseLine(std::string_view line) {
  constexpr std::string_view kSeparator = " - ";
  const size_t dash = line.find(kSeparator);
  if (dash == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> before = Split(line.substr(0, dash), ' ');
  const std::vector<std::string_view> after = Split(line.substr(dash + kSeparator.size()), ' ');
  if (before.size() < 6 || after.size() < 3) return std::nullopt;
  if (after[0] == "cgroup2") return CgroupMount{Unescape(before[4]), true, ""};
  if (after[0] == "cgroup") return CgroupMount{Unescape(before[4]), false, Controllers(after[2])};
  return std::nullopt;
}

int Rank(const CgroupMount& mount) {
  if (mount.v2) return 0;
  const auto has = [&](std::string_view controller) {
    const std::vector<std::string_view> all = Split(mount.controller, ',');
    return std::ranges::find(all, controller) != all.end();
  };
  if (has("cpu") || has("cpuacct")) return 1;
  if (has("memory") || has("pids")) return 2;
  return mount.IsNamed() ? 4 : 3;
}

}  // namespace

Result<std::vector<CgroupMount>> ReadCgroupMounts(const Procfs& procfs) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(procfs.root + "/self/mountinfo"));
  std::vector<CgroupMount> mounts;
  for (const std::string_view line : Split(text, '\n')) {
    std::optional<CgroupMount> mount = ParseLine(line);
    if (!mount) continue;
    const auto is_same = [&](const CgroupMount& other) {
      return other.v2 == mount->v2 && other.controller == mount->controller;
    };
    // Hierarchies are bind-mounted into chroots and sandboxes too; the first is the system's own.
    if (std::ranges::none_of(mounts, is_same)) mounts.push_back(*std::move(mount));
  }
  std::ranges::stable_sort(mounts, {}, Rank);
  return mounts;
}

}  // namespace pyrometer
