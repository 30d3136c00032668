// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_facts.h"

#include <absl/strings/numbers.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/pid_namespace.h"
#include "base/sysctl.h"
#include "base/text.h"
#include "sampler/sample_rate.h"

namespace pyrometer {
namespace {

// The inode number of the initial one, PROC_USER_INIT_INO of the kernel's include/linux/proc_ns.h.
constexpr std::string_view kInitialUserNamespace = "user:[4026531837]";

// The first word after `key` in a file of lines "key word word..."; "" if there is none.
std::string WordAfter(const std::string& path, std::string_view key) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return {};
  for (const std::string_view line : Split(*text, '\n')) {
    if (!line.starts_with(key)) continue;
    const std::string_view rest = Trim(line.substr(key.size()));
    return std::string(rest.substr(0, rest.find_first_of(" \t")));
  }
  return {};
}

std::optional<uint64_t> ReadCapabilities(const Procfs& procfs) {
  uint64_t set = 0;
  if (!absl::SimpleHexAtoi(WordAfter(procfs.root + "/self/status", "CapEff:"), &set)) {
    return std::nullopt;
  }
  return set;
}

// "Max locked memory  SOFT HARD bytes"; a number only if there is a soft limit.
std::optional<uint64_t> ReadMemlockLimit(const Procfs& procfs) {
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(WordAfter(procfs.root + "/self/limits", "Max locked memory"), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

// "none [integrity] confidentiality"; no file: the kernel has no lockdown.
Lockdown ReadLockdown(const Procfs& procfs) {
  const Result<std::string> text = ReadFile(procfs.sys + "/kernel/security/lockdown");
  if (!text) return Lockdown::kNone;
  if (text->find("[confidentiality]") != std::string::npos) return Lockdown::kConfidentiality;
  if (text->find("[integrity]") != std::string::npos) return Lockdown::kIntegrity;
  return Lockdown::kNone;
}

// Hidden addresses read as zeros. A few symbols (per-CPU ones) are at zero anyway, so not the first
// line decides but the first 64 KiB, a thousand symbols.
bool ReadKernelAddressesVisible(const Procfs& procfs) {
  const Result<UniqueFd> file = Open(procfs.root + "/kallsyms", O_RDONLY);
  if (!file) return false;
  std::string head(size_t{64} << 10, '\0');
  size_t have = 0;
  while (have < head.size()) {
    const ssize_t n = ::read(file->get(), head.data() + have, head.size() - have);
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  head.resize(have);
  for (const std::string_view line : Split(head, '\n')) {
    if (line.find_first_not_of('0') < line.find(' ')) return true;
  }
  return false;
}

// True also if it cannot be known: a wrong alarm would be worse than none.
bool IsInitialUserNamespace(const Procfs& procfs) {
  std::error_code error;
  const std::filesystem::path link =
      std::filesystem::read_symlink(procfs.root + "/self/ns/user", error);
  return error || link.string() == kInitialUserNamespace;
}

bool HasFiles(const std::string& directory) {
  std::error_code error;
  return !std::filesystem::is_empty(directory, error) && !error;
}

}  // namespace

MachineFacts GatherFacts(const Procfs& procfs, const DebugSources& sources, KernelFeatures kernel) {
  MachineFacts facts;
  facts.kernel = std::move(kernel);
  facts.capabilities = ReadCapabilities(procfs);
  facts.initial_user_namespace = IsInitialUserNamespace(procfs);
  facts.pid_namespace = CheckPidNamespace(procfs);
  facts.perf_event_paranoid = ReadSysctl(procfs, "kernel/perf_event_paranoid");
  facts.kptr_restrict = ReadSysctl(procfs, "kernel/kptr_restrict");
  facts.kernel_addresses_visible = ReadKernelAddressesVisible(procfs);
  facts.lockdown = ReadLockdown(procfs);
  facts.memlock_limit = ReadMemlockLimit(procfs);
  facts.sample_rate_limit = ReadSampleRateLimit(procfs);
  if (Result<std::vector<CgroupMount>> mounts = ReadCgroupMounts(procfs)) {
    facts.cgroups = *std::move(mounts);
  }
  facts.debug_files = HasFiles(sources.build_id_directory);
  facts.debuginfod_urls = sources.debuginfod_urls;
  facts.bpf_stats = ReadSysctl(procfs, "kernel/bpf_stats_enabled").value_or(0) != 0;
  return facts;
}

}  // namespace pyrometer
