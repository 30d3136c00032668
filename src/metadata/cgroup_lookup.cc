// SPDX-License-Identifier: Apache-2.0
#include "metadata/cgroup_lookup.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "base/system_error.h"
#include "base/text.h"
#include "metadata/cgroup_mounts.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdDigits = 64;
constexpr size_t kEcsTaskDigits = 32;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f');
}

// Where the id that begins `text` ends: 64 hex digits, or 32, '-' and a number; 0 if there is none.
size_t IdLength(std::string_view text) {
  const auto digits =
      static_cast<size_t>(std::ranges::find_if_not(text, IsHexDigit) - text.begin());
  if (digits == kIdDigits) return digits;
  if (digits != kEcsTaskDigits || text.size() < digits + 2 || text[digits] != '-') return 0;
  const std::string_view number = text.substr(digits + 1);
  const auto length =
      static_cast<size_t>(std::ranges::find_if_not(number, IsDigit) - number.begin());
  return length > 0 ? digits + 1 + length : 0;
}

bool IsBelow(const fs::path& path, const fs::path& root) {
  return std::ranges::mismatch(root, path).in1 == root.end();
}

// The kernel's enum cgroup_subsys_id has the v2 names, of which one differs.
std::string SubsystemOf(const CgroupMount& mount) {
  const std::string_view first = Split(mount.controller, ',').front();
  return first == "blkio" ? "io" : std::string(first);
}

Result<CgroupTarget> TargetAt(const fs::path& path, const CgroupMount& mount) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return SystemError(errno, path.string());
  if (!S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kInvalid, "cgroup {}: is a file; cgroups are directories",
                path.string());
  }
  if (mount.IsNamed()) {
    return Fail(
        ErrorCode::kUnsupported,
        "cgroup {}: is in a hierarchy without controllers ({}), which cannot be used as a filter",
        path.string(), mount.controller);
  }
  return CgroupTarget{path.string(), status.st_ino, mount.v2, SubsystemOf(mount)};
}

// Where `path`, with every link followed, lies: in the innermost mount of those that hold it, as
// v1 hierarchies may be mounted below the v2 one. Nothing if it does not exist or lies elsewhere.
std::optional<Result<CgroupTarget>> Locate(const fs::path& path,
                                           const std::vector<CgroupMount>& mounts) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return std::nullopt;
  const CgroupMount* innermost = nullptr;
  for (const CgroupMount& mount : mounts) {
    const bool deeper = innermost == nullptr || IsBelow(mount.path, innermost->path);
    if (deeper && IsBelow(real, mount.path)) innermost = &mount;
  }
  if (innermost == nullptr) return std::nullopt;
  return TargetAt(real, *innermost);
}

// Where was looked, for a message: "/a, /b and 7 more".
std::string Places(const std::vector<CgroupMount>& mounts) {
  constexpr size_t kShown = 2;
  std::string places;
  for (size_t i = 0; i < std::min(kShown, mounts.size()); ++i) {
    places += (i == 0 ? "" : ", ") + mounts[i].path;
  }
  if (mounts.size() > kShown) places += fmt::format(" and {} more", mounts.size() - kShown);
  return places;
}

// All directories below `root` whose own name carries an id that begins with `prefix`, by that id;
// of several with one id the outermost. Cgroups that vanish meanwhile, or may not be read, are
// passed over, and so is what is mounted below.
std::map<std::string, fs::path> CollectContainers(const fs::path& root, std::string_view prefix,
                                                  const std::vector<CgroupMount>& mounts) {
  const auto depth = [](const fs::path& path) { return std::distance(path.begin(), path.end()); };
  std::map<std::string, fs::path> found;
  std::vector<fs::path> pending = {root};
  while (!pending.empty()) {
    const fs::path directory = std::move(pending.back());
    pending.pop_back();
    std::error_code error;
    for (fs::directory_iterator entry(directory, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_symlink(ignored) || !entry->is_directory(ignored)) continue;
      if (std::ranges::find(mounts, entry->path().string(), &CgroupMount::path) != mounts.end()) {
        continue;
      }
      const std::string name = entry->path().filename().string();
      const std::string_view id = ContainerIdOf(name);
      if (!id.empty() && id.starts_with(prefix)) {
        fs::path& best = found[std::string(id)];
        if (best.empty() || depth(entry->path()) < depth(best)) best = entry->path();
      }
      pending.push_back(entry->path());
    }
  }
  return found;
}

}  // namespace

std::string_view ContainerIdOf(std::string_view name) {
  if (name.starts_with("libpod-conmon-") || name.starts_with("crio-conmon-")) return {};
  std::string_view last;
  for (size_t start = 0; start < name.size(); ++start) {
    const char before = start == 0 ? '/' : name[start - 1];
    if (before != '/' && before != ':' && before != '_' && before != '-') continue;
    const std::string_view rest = name.substr(start);
    const size_t length = IdLength(rest);
    if (length == 0) continue;
    const std::string_view after = rest.substr(length);
    if (after.empty() || after.starts_with(".scope")) last = rest.substr(0, length);
  }
  return last;
}

Result<CgroupTarget> FindCgroup(const Procfs& procfs, const std::string& path) {
  if (path.empty()) return Fail(ErrorCode::kInvalid, "the path of a cgroup is empty");
  ASSIGN_OR_RETURN(const std::vector<CgroupMount> mounts, ReadCgroupMounts(procfs));
  // As it stands, then below each hierarchy's root.
  std::vector<fs::path> candidates;
  if (path.starts_with('/')) candidates.emplace_back(path);
  for (const CgroupMount& mount : mounts) {
    candidates.push_back(mount.path / fs::path(path).relative_path());
  }
  for (const fs::path& candidate : candidates) {
    if (std::optional<Result<CgroupTarget>> target = Locate(candidate, mounts)) {
      return *std::move(target);
    }
  }
  if (mounts.empty()) return Fail(ErrorCode::kNotFound, "cgroup {}: no cgroups are mounted", path);
  return Fail(ErrorCode::kNotFound, "cgroup {}: no such cgroup in {}", path, Places(mounts));
}

Result<CgroupTarget> FindContainer(const Procfs& procfs, const std::string& id) {
  ASSIGN_OR_RETURN(const std::vector<CgroupMount> mounts, ReadCgroupMounts(procfs));
  for (const CgroupMount& mount : mounts) {
    const std::map<std::string, fs::path> found = CollectContainers(mount.path, id, mounts);
    if (found.size() > 1) {
      return Fail(ErrorCode::kInvalid, "container {}: several ids begin with this: {} and {}", id,
                  found.begin()->first, std::next(found.begin())->first);
    }
    if (found.size() == 1) return TargetAt(found.begin()->second, mount);
  }
  return Fail(ErrorCode::kNotFound,
              "container {}: no cgroup carries that id (looked in {}); is it running, and on this "
              "machine?",
              id, Places(mounts));
}

Result<std::map<std::string, CgroupTarget>> ListContainerCgroups(const Procfs& procfs) {
  ASSIGN_OR_RETURN(const std::vector<CgroupMount> mounts, ReadCgroupMounts(procfs));
  std::map<std::string, CgroupTarget> targets;
  for (const CgroupMount& mount : mounts) {
    for (const auto& [id, path] : CollectContainers(mount.path, "", mounts)) {
      // One that has just ended, or whose hierarchy the kernel side cannot query, is no target.
      Result<CgroupTarget> target = TargetAt(path, mount);
      if (target) targets.emplace(id, *std::move(target));
    }
    if (!targets.empty()) break;
  }
  return targets;
}

std::optional<CgroupTarget> PodCgroupOf(const CgroupTarget& container, std::string_view pod_uid) {
  if (pod_uid.empty()) return std::nullopt;
  const fs::path parent = fs::path(container.path).parent_path();
  // "kubepods-burstable-pod<uid>.slice" with '_' for '-' by systemd's driver, else "pod<uid>".
  std::string name = parent.filename().string();
  std::ranges::replace(name, '_', '-');
  if (name.find("pod" + std::string(pod_uid)) == std::string::npos) return std::nullopt;
  struct stat status {};
  if (::stat(parent.c_str(), &status) != 0) return std::nullopt;
  CgroupTarget pod = container;
  pod.path = parent.string();
  pod.id = status.st_ino;
  return pod;
}

bool Exists(const CgroupTarget& cgroup) {
  struct stat status {};
  return ::stat(cgroup.path.c_str(), &status) == 0 && status.st_ino == cgroup.id;
}

}  // namespace pyrometer
