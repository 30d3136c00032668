// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/procfs.h"
#include "foreign/sandbox.h"
#include "metadata/cgroup_mounts.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "sampler/kernel_features.h"

namespace pyrometer {

enum class Lockdown { kNone, kIntegrity, kConfidentiality };

// Everything that Examine() judges.
struct MachineFacts {
  KernelFeatures kernel;
  std::optional<uint64_t> capabilities;  // the effective set, bit CAP_x each
  bool initial_user_namespace = true;    // else capabilities count for little
  Result<void> pid_namespace = {};       // as record checks it, see base/pid_namespace.h
  std::optional<int64_t> perf_event_paranoid;
  std::optional<int64_t> kptr_restrict;
  bool kernel_addresses_visible = false;  // in /proc/kallsyms, to us
  Lockdown lockdown = Lockdown::kNone;
  std::optional<uint64_t> memlock_limit;  // bytes; nothing: unlimited, or not known
  std::optional<Hertz> sample_rate_limit;
  std::vector<CgroupMount> cgroups;
  bool debug_files = false;                       // any below /usr/lib/debug/.build-id
  std::string debuginfod_urls;                    // $DEBUGINFOD_URLS
  bool bpf_stats = false;                         // kernel.bpf_stats_enabled
  Result<SandboxLevel> sandbox = SandboxLevel{};  // of readers of foreign files
};

// Where to find the facts that are in neither /proc nor /sys.
struct DebugSources {
  std::string build_id_directory = "/usr/lib/debug/.build-id";
  std::string debuginfod_urls;
};

MachineFacts GatherFacts(const Procfs& procfs, const DebugSources& sources, KernelFeatures kernel);

}  // namespace pyrometer
