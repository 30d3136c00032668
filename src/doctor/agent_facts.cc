// SPDX-License-Identifier: Apache-2.0
#include "doctor/agent_facts.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "base/text.h"
#include "metadata/cgroup_mounts.h"

namespace pyrometer {
namespace {

constexpr const char* kServiceUser = "pyrometer";
constexpr const char* kUnit = "pyrometer.service";

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

struct Account {
  uid_t user = 0;
  std::vector<gid_t> groups;
};

std::optional<Account> FindAccount(const std::string& name) {
  const passwd* const entry = ::getpwnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  Account account{.user = entry->pw_uid, .groups = std::vector<gid_t>(64)};
  int count = static_cast<int>(account.groups.size());
  ::getgrouplist(name.c_str(), entry->pw_gid, account.groups.data(), &count);
  // If there are more, these are the first.
  account.groups.resize(std::clamp<size_t>(static_cast<size_t>(count), 1, account.groups.size()));
  return account;
}

// Whether files can be made in the directory. By mode bits, since the question is about somebody
// else, and somebody without capabilities over files.
bool MayMakeFiles(const Account& account, const struct stat& directory) {
  constexpr mode_t kWriteAndSearch = 03;
  if (!S_ISDIR(directory.st_mode)) return false;
  if (directory.st_uid == account.user) return (directory.st_mode >> 6 & 03) == kWriteAndSearch;
  if (std::ranges::find(account.groups, directory.st_gid) != account.groups.end()) {
    return (directory.st_mode >> 3 & 03) == kWriteAndSearch;
  }
  return (directory.st_mode & 03) == kWriteAndSearch;
}

// Of the directory, or of the nearest one above that exists, in which it would be made.
bool IsWritable(const std::optional<Account>& account, std::filesystem::path path) {
  struct stat found {};
  while (::stat(path.c_str(), &found) != 0) {
    // What we may not look into cannot be judged; a wrong alarm would be worse than none.
    if (errno != ENOENT) return errno == EACCES;
    if (path == path.parent_path()) return false;
    path = path.parent_path();
  }
  if (account) return MayMakeFiles(*account, found);
  return S_ISDIR(found.st_mode) && ::access(path.c_str(), W_OK | X_OK) == 0;
}

UnitState FindUnit(const std::string& root) {
  const std::string own = root + "/etc/systemd/system/" + kUnit;
  std::error_code error;
  if (std::filesystem::read_symlink(own, error) == "/dev/null") return UnitState::kMasked;
  constexpr std::array kDirectories = {"/etc/systemd/system/", "/run/systemd/system/",
                                       "/usr/local/lib/systemd/system/", "/usr/lib/systemd/system/",
                                       "/lib/systemd/system/"};
  const bool installed = std::ranges::any_of(
      kDirectories, [&](const char* directory) { return Exists(root + directory + kUnit); });
  if (!installed) return UnitState::kNotInstalled;
  const std::string wanted = root + "/etc/systemd/system/multi-user.target.wants/" + kUnit;
  return Exists(wanted) ? UnitState::kEnabled : UnitState::kDisabled;
}

// systemd is not asked: it keeps the processes of each service in a cgroup of that name.
bool ServiceRuns(const Procfs& procfs) {
  const Result<std::vector<CgroupMount>> mounts = ReadCgroupMounts(procfs);
  if (!mounts) return false;
  return std::ranges::any_of(*mounts, [](const CgroupMount& mount) {
    const auto processes = ReadFile(mount.path + "/system.slice/" + kUnit + "/cgroup.procs");
    return processes && !Trim(*processes).empty();
  });
}

}  // namespace

AgentFacts GatherAgentFacts(const Procfs& procfs, const AgentSetup& setup,
                            const std::string& root) {
  AgentFacts facts;
  facts.setup = setup;
  facts.unit = FindUnit(root);
  facts.systemd_runs = Exists(root + "/run/systemd/system");
  facts.service_runs = ServiceRuns(procfs);
  facts.config_readable = setup.config_file.empty() ||
                          ::access(setup.config_file.c_str(), R_OK) == 0 || errno != EACCES;
  std::optional<Account> account;
  if (facts.unit != UnitState::kNotInstalled) account = FindAccount(kServiceUser);
  if (account) facts.user = kServiceUser;
  for (const std::string& directory : setup.directories) {
    facts.directories.push_back({directory, IsWritable(account, directory)});
  }
  if (!setup.listen.empty()) {
    facts.answer = AskAgent({.address = setup.listen, .tls = setup.tls});
  }
  return facts;
}

}  // namespace pyrometer
