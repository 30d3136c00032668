// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "base/system_error.h"
#include "base/unique_fd.h"

namespace pyrometer {
namespace {

// Part of the kernel's interface: PROC_CGROUP_INIT_INO of linux/proc_ns.h.
constexpr ino_t kInitialNamespace = 0xEFFFFFFB;

// The first kernel thread: it never leaves the namespaces that the machine began with, and there
// are machines that let nobody look at process 1.
constexpr const char* kKthreadd = "/2";

}  // namespace

Result<void> EnterMachineCgroupNamespace(const Procfs& procfs) {
  struct stat ours {};
  if (::stat((procfs.root + "/thread-self/ns/cgroup").c_str(), &ours) != 0) {
    // A kernel without such namespaces has just the one.
    if (errno == ENOENT) return {};
    return SystemError(errno, "looking at our own cgroup namespace");
  }
  if (ours.st_ino == kInitialNamespace) return {};
  const std::string path = procfs.root + kKthreadd + "/ns/cgroup";
  const UniqueFd machine(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!machine) return SystemError(errno, path);
  if (::setns(machine.get(), CLONE_NEWCGROUP) != 0) {
    return SystemError(errno, "entering the machine's cgroup namespace");
  }
  return {};
}

}  // namespace pyrometer
