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
namespace {

Result<std::vector<Pid>> ListPids(const Procfs& procfs) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(procfs.root.c_str()), &::closedir);
  if (!directory) return SystemError(errno, procfs.root);
  std::vector<Pid> pids;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name(entry->d_name);
    uint32_t pid = 0;
    const auto [next, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && next == name.data() + name.size()) pids.push_back(Pid(pid));
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace

Result<ScannedProcess> ScanProcess(const ProcessDirectory& directory, Pid pid) {
  ScannedProcess process;
  process.read_at = MonotonicNow();
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
  if (process.kernel_thread) return process;
  ASSIGN_OR_RETURN(process.mappings, directory.Mappings());
  return process;
}

Result<void> ScanProcesses(const Procfs& procfs, const ScanVisitor& visit) {
  ASSIGN_OR_RETURN(const std::vector<Pid> pids, ListPids(procfs));
  for (const Pid pid : pids) {
    const Result<ProcessDirectory> directory = ProcessDirectory::Open(procfs, pid);
    if (!directory) continue;
    Result<ScannedProcess> process = ScanProcess(*directory, pid);
    if (process) visit(*std::move(process), *directory);
  }
  return {};
}

}  // namespace pyrometer
