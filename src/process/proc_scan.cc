// SPDX-License-Identifier: Apache-2.0
#include "process/proc_scan.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/system_error.h"

namespace pyrometer {

Result<std::vector<Pid>> ListProcesses(const Procfs& procfs) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(procfs.root.c_str()), &::closedir);
  if (!directory) return SystemError(errno, procfs.root);
  std::vector<Pid> pids;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    uint32_t pid = 0;
    const auto [next, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && next == name.data() + name.size()) pids.push_back(Pid(pid));
  }
  // Half a list would end the processes of the other half.
  if (errno != 0) return SystemError(errno, procfs.root);
  std::sort(pids.begin(), pids.end());
  return pids;
}

Result<ScannedProcess> ScanProcess(const ProcessDirectory& directory, Pid pid, ProcReader& reader,
                                   const Clock& clock) {
  ScannedProcess process;
  process.read_at = clock.Now();
  ASSIGN_OR_RETURN(ProcStat stat, directory.Stat());
  ASSIGN_OR_RETURN(process.threads, directory.Threads());
  // A leader that is a zombie or dead has had its exit record, though others may run on.
  if (stat.state == 'Z' || stat.state == 'X') std::erase(process.threads, Tid(pid.value()));
  if (process.threads.empty()) {
    return Fail(ErrorCode::kNotFound, "process {} has ended", pid.value());
  }
  process.key = {pid, stat.start};
  process.comm = std::move(stat.comm);
  process.kernel_thread = stat.kernel_thread;
  // Before its mappings: the files of one that ends meanwhile are found by their paths.
  if (const auto root = directory.Root()) process.root = *root;
  if (process.kernel_thread) {
    process.user = UserId(0);
    process.maps.emplace();
    return process;
  }
  if (const auto status = directory.Status()) process.user = UserId(status->user);
  Result<ProcMaps> maps = reader.Mappings({directory, process.key, process.user});
  if (!maps && IsGone(maps.error())) return maps.error();
  process.is_awaited = !maps && maps.error().code() == ErrorCode::kExhausted;
  if (maps) process.maps = *std::move(maps);
  return process;
}

}  // namespace pyrometer
