// SPDX-License-Identifier: Apache-2.0
// Judges the facts; one function per check.
#include <fmt/format.h>
#include <linux/capability.h>

#include <array>
#include <utility>

#include "base/sysctl.h"
#include "doctor/doctor.h"
#include "doctor/doctor_facts.h"

namespace pyrometer {
namespace {

constexpr KernelVersion kOldestKernel{5, 10};
// From here on BPF memory is charged to the memory cgroup and not to RLIMIT_MEMLOCK.
constexpr KernelVersion kMemlockUnused{5, 11};
constexpr uint64_t kEnoughMemlock = uint64_t{256} << 20;
constexpr Hertz kDefaultFrequency{99};

// `check` with its status: ok, without advice, if `good`, else `otherwise`.
Check Judge(bool good, CheckStatus otherwise, Check check) {
  check.status = good ? CheckStatus::kOk : otherwise;
  if (good) check.advice.clear();
  return check;
}

bool Has(const MachineFacts& facts, int capability) {
  return facts.capabilities && (*facts.capabilities >> capability & 1) != 0;
}

bool HasOr(const MachineFacts& facts, int capability, int broader) {
  return Has(facts, capability) || Has(facts, broader);
}

bool MaySample(const MachineFacts& facts) {
  return HasOr(facts, CAP_BPF, CAP_SYS_ADMIN) && HasOr(facts, CAP_PERFMON, CAP_SYS_ADMIN);
}

// True if the level is what denies the clock event, though CAP_PERFMON is there.
bool ParanoiaDeniesSampling(const MachineFacts& facts) {
  return facts.kernel.cpu_clock == Support::kDenied && MaySample(facts) &&
         facts.perf_event_paranoid.value_or(0) > kHighestParanoia && !Has(facts, CAP_SYS_ADMIN);
}

std::string AdviceOnParanoia() {
  return fmt::format(
      "sysctl -w kernel.perf_event_paranoid={0} (levels above {0} are a distribution's own, and "
      "some of them demand CAP_SYS_ADMIN)",
      kHighestParanoia);
}

// --- the kernel ---

Check CheckKernel(const MachineFacts& facts) {
  const auto version = ParseKernelVersion(facts.kernel.release);
  return Judge(version && *version >= kOldestKernel, CheckStatus::kFail,
               {.name = "kernel",
                .found = facts.kernel.release,
                .meaning = fmt::format("Linux {}.{} or newer is needed", kOldestKernel.major,
                                       kOldestKernel.minor),
                .advice = "boot a newer kernel"});
}

Check CheckArchitecture(const MachineFacts& facts) {
  const std::string& machine = facts.kernel.machine;
  return Judge(machine == "x86_64" || machine == "aarch64", CheckStatus::kFail,
               {.name = "architecture",
                .found = machine,
                .meaning = "x86_64 and aarch64 are supported",
                .advice = ""});
}

Check CheckBtf(const MachineFacts& facts) {
  return Judge(
      facts.kernel.btf == Support::kYes, CheckStatus::kFail,
      {.name = "btf",
       .found = facts.kernel.btf == Support::kYes ? "present" : "no /sys/kernel/btf/vmlinux",
       .meaning = "BTF is needed to adapt the sampling program to the running kernel",
       .advice = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y (in a container, "
                 "mount /sys)"});
}

// What the kernel must or should support.
struct Feature {
  const char* name;
  Support KernelFeatures::*support;
  CheckStatus otherwise;
  const char* what;
  const char* meaning;  // what its absence costs, or what it is for
};
constexpr std::array<Feature, 11> kFeatures = {{
    {"perf_event_program", &KernelFeatures::perf_event_program, CheckStatus::kFail,
     "BPF programs on perf events", "such a program takes the samples"},
    {"cpu_clock", &KernelFeatures::cpu_clock, CheckStatus::kFail, "cpu-clock events on whole CPUs",
     "a clock event on each CPU triggers the samples"},
    {"map_in_map", &KernelFeatures::map_in_map, CheckStatus::kFail, "BPF maps in maps",
     "windows end by exchanging maps in a map"},
    {"batch_operations", &KernelFeatures::batch_operations, CheckStatus::kFail,
     "BPF map batch operations", "windows are read in batches"},
    {"raw_tracepoint", &KernelFeatures::raw_tracepoint, CheckStatus::kFail, "raw tracepoints",
     "forks and exits are followed through raw tracepoints"},
    {"task_iterator", &KernelFeatures::task_iterator, CheckStatus::kFail, "BPF task iterator",
     "running processes are listed with it at the start"},
    {"ring_buffer", &KernelFeatures::ring_buffer, CheckStatus::kFail, "BPF ring buffer",
     "stacks that cannot be unwound in the kernel reach user space through it"},
    {"perf_link", &KernelFeatures::perf_link, CheckStatus::kOk, "BPF links on perf events",
     "before 5.15 programs are attached by ioctl instead; nothing is lost"},
    {"task_pt_regs", &KernelFeatures::task_pt_regs, CheckStatus::kOk, "bpf_task_pt_regs",
     "before 5.15 user registers are found by the kernel stack's size; nothing is lost"},
    {"mmap2_build_id", &KernelFeatures::mmap2_build_id, CheckStatus::kWarn,
     "build ids in mmap events",
     "before 5.12 build ids are read from the files; those of short-lived processes may be gone"},
    {"cycles", &KernelFeatures::cycles, CheckStatus::kOk, "hardware cycle counter",
     "not used: a software clock triggers the samples"},
}};

std::string_view Word(Support support) {
  switch (support) {
    case Support::kYes:
      return "available";
    case Support::kNo:
      return "not available";
    case Support::kDenied:
      break;
  }
  return "denied";
}

Check CheckFeature(const Feature& feature, const MachineFacts& facts) {
  const Support support = facts.kernel.*feature.support;
  Check check{.name = feature.name,
              .found = fmt::format("{}: {}", feature.what, Word(support)),
              .meaning = feature.meaning,
              .advice = ""};
  if (support == Support::kDenied && !MaySample(facts)) {
    check.status = CheckStatus::kUnknown;
    check.meaning = "cannot be tested without the capabilities above";
    return check;
  }
  if (feature.support == &KernelFeatures::cpu_clock && ParanoiaDeniesSampling(facts)) {
    check.advice = AdviceOnParanoia();
  } else if (support == Support::kDenied) {
    check.advice =
        "allow the system calls bpf and perf_event_open (seccomp profile of the "
        "container, security modules)";
  } else if (feature.otherwise == CheckStatus::kFail) {
    check.advice =
        "boot a distribution kernel, or build yours with CONFIG_BPF_SYSCALL, "
        "CONFIG_BPF_EVENTS and CONFIG_PERF_EVENTS";
  }
  return Judge(support == Support::kYes, feature.otherwise, std::move(check));
}

// --- privileges ---

// What each is for was found by leaving it out, as tests/system/installed_agent_test.py does.
struct Capability {
  const char* check;
  const char* name;
  int number;
  int broader;            // which includes it
  CheckStatus otherwise;  // if it is missing
  const char* purpose;
  const char* lost;
};
constexpr std::array<Capability, 6> kCapabilities = {{
    {"cap_bpf", "CAP_BPF", CAP_BPF, CAP_SYS_ADMIN, CheckStatus::kFail, "loads the BPF programs",
     "the BPF programs cannot be loaded"},
    {"cap_perfmon", "CAP_PERFMON", CAP_PERFMON, CAP_SYS_ADMIN, CheckStatus::kFail,
     "samples the CPUs, and reads the stacks", "CPUs cannot be sampled"},
    {"cap_sys_ptrace", "CAP_SYS_PTRACE", CAP_SYS_PTRACE, CAP_SYS_PTRACE, CheckStatus::kWarn,
     "finds what other users' processes have mapped",
     "functions of other users' programs stay unnamed"},
    {"cap_dac_read_search", "CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE,
     CheckStatus::kWarn, "reads programs that only their owners may read",
     "functions of programs that only their owners may read stay unnamed"},
    {"cap_checkpoint_restore", "CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN,
     CheckStatus::kWarn, "reads programs that were deleted, or replaced, while they run",
     "functions of programs that were deleted or replaced before the start stay unnamed"},
    {"cap_syslog", "CAP_SYSLOG", CAP_SYSLOG, CAP_SYSLOG, CheckStatus::kWarn,
     "reads the kernel's symbols", "kernel functions may stay unnamed"},
}};

Check CheckCapability(const Capability& capability, const MachineFacts& facts) {
  const bool present = HasOr(facts, capability.number, capability.broader);
  return Judge(present, capability.otherwise,
               {.name = capability.check,
                .found = fmt::format("{}, which {}: {}", capability.name, capability.purpose,
                                     present ? "present" : "missing"),
                .meaning = present ? capability.purpose : capability.lost,
                .advice = fmt::format("run as root, or grant {} (systemd: AmbientCapabilities=; "
                                      "container: securityContext.capabilities.add)",
                                      capability.name)});
}

Check CheckUserNamespace(const MachineFacts& facts) {
  return Judge(facts.initial_user_namespace, CheckStatus::kFail,
               {.name = "user_namespace",
                .found = facts.initial_user_namespace ? "the initial one" : "not the initial one",
                .meaning = "capabilities count only in the initial user namespace",
                .advice = "do not run in a rootless container or under unshare -U"});
}

Check CheckParanoid(const MachineFacts& facts) {
  const std::string level = facts.perf_event_paranoid
                                ? fmt::format("{}", *facts.perf_event_paranoid)
                                : std::string("not readable");
  const bool denies = ParanoiaDeniesSampling(facts);
  const char* const meaning = denies ? "the kernel denies clock events despite CAP_PERFMON"
                              : HasOr(facts, CAP_PERFMON, CAP_SYS_ADMIN)
                                  ? "does not matter: CAP_PERFMON overrides it"
                                  : "does not matter: BPF programs need CAP_PERFMON at any level";
  return Judge(!denies, CheckStatus::kFail,
               {.name = "perf_event_paranoid",
                .found = level,
                .meaning = meaning,
                .advice = AdviceOnParanoia()});
}

// Where the addresses are visible: kernel/ksyms_common.c, kallsyms_show_value().
std::string AdviceOnKernelAddresses(const MachineFacts& facts) {
  std::string grant = Has(facts, CAP_SYSLOG) ? "" : "run as root, or grant CAP_SYSLOG";
  if (facts.kptr_restrict.value_or(0) < 2) return grant;
  return fmt::format("sysctl -w kernel.kptr_restrict=1 (2 hides them from root too){}{}",
                     grant.empty() ? "" : "; and ", grant);
}

Check CheckKernelSymbols(const MachineFacts& facts) {
  const std::string level =
      facts.kptr_restrict ? fmt::format("{}", *facts.kptr_restrict) : std::string("not readable");
  Check check{.name = "kptr_restrict",
              .found = fmt::format("{}; addresses in /proc/kallsyms are {}", level,
                                   facts.kernel_addresses_visible ? "visible" : "hidden"),
              .meaning = facts.kernel_addresses_visible ? "kernel functions get their names"
                                                        : "kernel functions stay unnamed",
              .advice = AdviceOnKernelAddresses(facts)};
  return Judge(facts.kernel_addresses_visible, CheckStatus::kWarn, std::move(check));
}

Check CheckLockdown(const MachineFacts& facts) {
  const bool tight = facts.lockdown == Lockdown::kConfidentiality;
  const char* const found = tight                                    ? "confidentiality"
                            : facts.lockdown == Lockdown::kIntegrity ? "integrity"
                                                                     : "none";
  return Judge(!tight, CheckStatus::kFail,
               {.name = "lockdown",
                .found = found,
                .meaning = tight ? "the kernel lets nobody read its memory, so stacks cannot be "
                                   "unwound"
                                 : "does not affect sampling",
                .advice = "boot with lockdown=integrity, or without lockdown"});
}

Check CheckMemlock(const MachineFacts& facts) {
  const auto version = ParseKernelVersion(facts.kernel.release);
  const std::string found = facts.memlock_limit ? fmt::format("{} KiB", *facts.memlock_limit >> 10)
                                                : std::string("unlimited");
  if (version && *version >= kMemlockUnused) {
    return {.name = "memlock",
            .found = found,
            .meaning = "does not matter: since 5.11 BPF maps are charged to the memory cgroup",
            .advice = ""};
  }
  const bool enough = !facts.memlock_limit || *facts.memlock_limit >= kEnoughMemlock ||
                      Has(facts, CAP_SYS_RESOURCE);
  return Judge(enough, CheckStatus::kFail,
               {.name = "memlock",
                .found = found,
                .meaning = "before 5.11 BPF maps are charged as locked memory",
                .advice = "ulimit -l unlimited (systemd: LimitMEMLOCK=infinity), or grant "
                          "CAP_SYS_RESOURCE"});
}

// --- environment ---

Check CheckSampleRate(const MachineFacts& facts) {
  const bool known = facts.sample_rate_limit.has_value();
  return Judge(
      !known || *facts.sample_rate_limit >= kDefaultFrequency, CheckStatus::kWarn,
      {.name = "sample_rate",
       .found = known ? fmt::format("up to {} Hz", facts.sample_rate_limit->value)
                      : "limit not readable",
       .meaning = fmt::format("record refuses a higher --frequency, since the kernel would "
                              "throttle it; the default is {}",
                              kDefaultFrequency.value),
       .advice = "sysctl -w kernel.perf_event_max_sample_rate=100000 (the kernel lowers it "
                 "when sampling takes too long), or give a lower --frequency"});
}

Check CheckCgroups(const MachineFacts& facts) {
  bool v1 = false;
  bool v2 = false;
  for (const CgroupMount& mount : facts.cgroups) {
    if (!mount.IsNamed()) (mount.v2 ? v2 : v1) = true;  // others cannot be filtered on
  }
  const char* const found = v1 && v2 ? "v1 and v2 (hybrid)"
                            : v2     ? "v2"
                            : v1     ? "v1"
                                     : "none that is usable";
  return Judge(v1 || v2, CheckStatus::kWarn,
               {.name = "cgroups",
                .found = found,
                .meaning = v1 && v2   ? "--cgroup and --container look in v2 first, then in v1"
                           : v1 || v2 ? "--cgroup and --container work"
                                      : "--cgroup and --container find nothing",
                .advice = "mount /sys/fs/cgroup (into the container)"});
}

Check CheckPidNamespace(const MachineFacts& facts) {
  const bool good = facts.pid_namespace.has_value();
  return Judge(good, CheckStatus::kFail,
               {.name = "pid_namespace",
                .found = good ? "the host's" : "not the host's, or not seen as such",
                .meaning = good ? "all processes are visible"
                                : "record refuses to run: process ids must be the kernel's own",
                .advice = good ? "" : facts.pid_namespace.error().message()});
}

Check CheckDebugFiles(const MachineFacts& facts) {
  std::string found =
      facts.debug_files ? "/usr/lib/debug/.build-id has files" : "none in /usr/lib/debug/.build-id";
  if (!facts.debuginfod_urls.empty()) found += ", debuginfod at " + facts.debuginfod_urls;
  return {.name = "debug_files",
          .found = std::move(found),
          .meaning =
              "not needed: programs themselves carry what unwinds and names them. Debug files "
              "add files, lines and inlined functions, and help to unwind those that carry "
              "little; debuginfod is not asked",
          .advice = ""};
}

Check CheckBpfStats(const MachineFacts& facts) {
  return Judge(!facts.bpf_stats, CheckStatus::kWarn,
               {.name = "bpf_stats",
                .found = facts.bpf_stats ? "on" : "off",
                .meaning = facts.bpf_stats ? "the kernel times every run of every BPF program, "
                                             "which makes samples more expensive"
                                           : "BPF programs run untimed",
                .advice = "sysctl -w kernel.bpf_stats_enabled=0"});
}

Check CheckSandbox(const MachineFacts& facts) {
  return Judge(facts.sandbox.has_value(), CheckStatus::kFail,
               {.name = "sandbox",
                .found = facts.sandbox ? Describe(*facts.sandbox) : facts.sandbox.error().message(),
                .meaning = facts.sandbox ? "what holds the processes that read foreign files"
                                         : "files of profiled programs cannot be read safely",
                .advice = "allow seccomp(2) and fork(2) here; or trust all programs, with record's "
                          "--no-sandbox and the agent's 'sandbox: off'"});
}

}  // namespace

DoctorReport Examine(const MachineFacts& facts) {
  DoctorReport report;
  report.kernel = facts.kernel.release + " " + facts.kernel.machine;
  const auto run = [&](auto... checks) { (report.checks.push_back(checks(facts)), ...); };
  run(CheckKernel, CheckArchitecture);
  for (const Capability& one : kCapabilities) report.checks.push_back(CheckCapability(one, facts));
  run(CheckUserNamespace, CheckLockdown, CheckBtf);
  for (const Feature& feature : kFeatures) report.checks.push_back(CheckFeature(feature, facts));
  run(CheckParanoid, CheckKernelSymbols, CheckMemlock, CheckSampleRate, CheckCgroups,
      CheckPidNamespace, CheckSandbox, CheckDebugFiles, CheckBpfStats);
  return report;
}

}  // namespace pyrometer
