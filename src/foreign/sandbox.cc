// SPDX-License-Identifier: Apache-2.0
#include "foreign/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace pyrometer {
namespace {

// Above all ids that systemd, containers and users' name spaces are given, and below those that
// break programs.
constexpr uid_t kUser = 2'147'000'000;

// What reading takes: of descriptors that are there, into memory, and to tell.
constexpr int kAllowed[] = {
    SCMP_SYS(pread64),         // the file
    SCMP_SYS(fstat),           // how large it is
    SCMP_SYS(recvmsg),         // the next task
    SCMP_SYS(sendmsg),         // its answer
    SCMP_SYS(close),           // the file, afterwards
    SCMP_SYS(brk),             // memory
    SCMP_SYS(munmap),          // likewise
    SCMP_SYS(mremap),          // likewise
    SCMP_SYS(madvise),         // likewise: what is free is given back
    SCMP_SYS(getrandom),       // where malloc() begins
    SCMP_SYS(futex),           // an exception's first throw takes a lock
    SCMP_SYS(clock_gettime),   // where it takes a system call
    SCMP_SYS(setitimer),       // the CPU time of a task
    SCMP_SYS(rt_sigprocmask),  // an abort
    SCMP_SYS(rt_sigreturn),    // the end of a signal's handler
    SCMP_SYS(exit),            // the end
    SCMP_SYS(exit_group),      // likewise
};

#if defined(__has_feature)
#define PYROMETER_HAS_FEATURE(feature) __has_feature(feature)
#else
#define PYROMETER_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || PYROMETER_HAS_FEATURE(address_sanitizer)
// What the sanitizers' runtime takes beside.
constexpr int kAlsoAllowed[] = {SCMP_SYS(write),    SCMP_SYS(read),         SCMP_SYS(pipe2),
                                SCMP_SYS(getpid),   SCMP_SYS(gettid),       SCMP_SYS(sched_yield),
                                SCMP_SYS(prctl),    SCMP_SYS(rt_sigaction), SCMP_SYS(sigaltstack),
                                SCMP_SYS(readlink), SCMP_SYS(mprotect)};
constexpr bool kIsSanitized = true;
#else
constexpr std::array<int, 0> kAlsoAllowed = {};
constexpr bool kIsSanitized = false;
#endif

// Memory that is mapped now, in bytes, as RLIMIT_AS counts it (proc_pid_statm(5): the first number,
// in pages). 0 if nobody tells.
uint64_t MappedBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  return statm ? pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

// The directory of an ended process's descriptors: nothing is in it, and nothing can be made there.
bool EmptyRoot() {
  // With one root for both: what the child changes is this process's, too. It has its own memory.
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    const bool done = ::chroot("/proc/self/fdinfo") == 0 && ::chdir("/") == 0;
    ::_exit(done ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int status = 0;
  const bool waited = child > 0 && ::waitpid(child, &status, 0) == child;
  return waited && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

bool DropUser() {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(kUser, kUser, kUser) == 0 &&
         ::setresuid(kUser, kUser, kUser) == 0;
}

bool DropCapabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  return ::syscall(SYS_capset, &header, none.data()) == 0 &&
         ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// Linux 5.13. What is not handled by a rule set is allowed, so each right of its first version is.
bool ForbidPaths() {
  constexpr uint64_t kAllOfFirst = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = kAllOfFirst;
  const long fd = ::syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
  if (fd < 0) return false;
  const bool done = ::syscall(SYS_landlock_restrict_self, fd, 0) == 0;
  ::close(static_cast<int>(fd));
  return done;
}

void Limit(int what, uint64_t most) {
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  ::setrlimit(static_cast<__rlimit_resource>(what), &limit);
}

void LimitResources(uint64_t mapped) {
  // A sanitizer's shadow is memory, too.
  if (!kIsSanitized) Limit(RLIMIT_AS, mapped);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_FSIZE, 0);
  Limit(RLIMIT_NOFILE, 16);
  // Of all its tasks together, in seconds: of one that works while it has none, at last.
  Limit(RLIMIT_CPU, 300);
}

// The kernel ends memory hogs; it may begin with what is made anew.
void OfferToBeKilledFirst() {
  std::ofstream("/proc/self/oom_score_adj") << "900";
}

}  // namespace

std::string Describe(const SandboxLevel& level) {
  std::string text;
  const auto add = [&text](bool has, std::string_view what) {
    if (!has) return;
    if (!text.empty()) text += ", ";
    text += what;
  };
  add(level.filter != 0, "seccomp filter");
  add(level.no_capabilities != 0, "no capabilities");
  add(level.own_user != 0, "own user");
  add(level.empty_root != 0, "empty root");
  add(level.landlock != 0, "Landlock");
  return text.empty() ? "none" : text;
}

struct Sandbox::Filter {
  Filter() : context(::seccomp_init(SCMP_ACT_KILL_PROCESS)) {
    if (context == nullptr) return;
    ok = Allow(kAllowed) && Allow(kAlsoAllowed) && AllowMapping() && AllowProtection() &&
         AllowAskingOpenFiles();
  }
  ~Filter() {
    if (context != nullptr) ::seccomp_release(context);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  template <typename Calls>
  bool Allow(const Calls& calls) {
    for (const int call : calls) {
      if (::seccomp_rule_add(context, SCMP_ACT_ALLOW, call, 0) != 0) return false;
    }
    return true;
  }
  // Memory, but none that can be executed, that nobody counts, or that is a file's.
  bool AllowMapping() {
    constexpr uint64_t kNot = MAP_SHARED | MAP_GROWSDOWN | MAP_HUGETLB;
    return ::seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                              SCMP_A3(SCMP_CMP_MASKED_EQ, kNot, 0)) == 0;
  }
  bool AllowProtection() {
    return ::seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0;
  }
  // fstat() where it is made of a call that could take a path.
  bool AllowAskingOpenFiles() {
    return ::seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
                              SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH)) == 0;
  }

  scmp_filter_ctx context;
  bool ok = false;
};

Sandbox::Sandbox() : mapped_bytes_(MappedBytes()), filter_(std::make_unique<Filter>()) {}

Sandbox::~Sandbox() = default;

void Sandbox::LeaveMachine() {
  OfferToBeKilledFirst();
  level_.empty_root = EmptyRoot() ? 1 : 0;
  level_.own_user = DropUser() ? 1 : 0;
  level_.no_capabilities = DropCapabilities() ? 1 : 0;
  level_.landlock = ForbidPaths() ? 1 : 0;
  // Last: a change of user sets it anew.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

Result<SandboxLevel> Sandbox::Close(uint64_t memory) {
  LimitResources(mapped_bytes_ + memory);
  const int error = filter_->ok ? ::seccomp_load(filter_->context) : -ENOMEM;
  if (error != 0) {
    return Fail(ErrorCode::kUnsupported, "seccomp refuses a filter of system calls (errno {})",
                -error);
  }
  level_.filter = 1;
  return level_;
}

}  // namespace pyrometer
