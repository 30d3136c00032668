// SPDX-License-Identifier: Apache-2.0
#include "cli/record_options.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "config/container_id.h"
#include "config/duration.h"
#include "config/event.h"
#include "config/frequency.h"
#include "config/label.h"
#include "config/memory_size.h"
#include "config/output_format.h"

namespace pyrometer {
namespace {

constexpr uint32_t kHighestPid = 1 << 22;  // PID_MAX_LIMIT of 64-bit kernels
constexpr size_t kCommLength = 15;         // TASK_COMM_LEN without its null

// The same target twice is no mistake worth an error.
template <typename T>
void AddOnce(std::vector<T>& values, T value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
}

Result<Pid> ParsePid(std::string_view text) {
  uint32_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid < 1 || pid > kHighestPid) {
    return Fail(ErrorCode::kInvalid, "'{}' is not a process id; give 1 to {}", text, kHighestPid);
  }
  return Pid(pid);
}

Result<StatsFormat> ParseStatsFormat(std::string_view text) {
  if (text == "text") return StatsFormat::kText;
  if (text == "json") return StatsFormat::kJson;
  return Fail(ErrorCode::kInvalid, "'{}' is not a format of --stats; choose text or json", text);
}

Result<Demangling> ParseDemangling(std::string_view text) {
  if (text == "simple") return Demangling::kSimple;
  if (text == "full") return Demangling::kFull;
  if (text == "none") return Demangling::kNone;
  return Fail(ErrorCode::kInvalid, "'{}' is nothing for --demangle; choose simple, full or none",
              Printable(text));
}

Result<void> AddNames(const char* option, const std::vector<std::string>& names,
                      std::vector<std::string>& to) {
  for (const std::string& name : names) {
    if (!IsContainerName(name)) {
      return Fail(ErrorCode::kInvalid, "'{}' cannot be the name given to {}", Printable(name),
                  option);
    }
    AddOnce(to, name);
  }
  return {};
}

// What looks like an id is one: no runtime is asked for it.
Result<void> SetContainers(const RecordOptions& options, RecordConfig& config) {
  ContainerNames& names = config.container_names;
  for (const std::string& text : options.containers) {
    Result<std::string> id = ParseContainerId(text);
    if (id) {
      AddOnce(config.containers, *std::move(id));
    } else if (IsContainerName(text)) {
      AddOnce(names.containers, text);
    } else {
      return std::move(id).error();
    }
  }
  RETURN_IF_ERROR(AddNames("--pod", options.pods, names.pods));
  return AddNames("--namespace", options.namespaces, names.namespaces);
}

Result<void> SetTargets(const RecordOptions& options, RecordConfig& config) {
  for (const std::string& list : options.pids) {
    for (const std::string_view text : Split(list, ',')) {
      ASSIGN_OR_RETURN(const Pid pid, ParsePid(text));
      AddOnce(config.pids, pid);
    }
  }
  for (const std::string& comm : options.comms) {
    if (comm.empty()) return Fail(ErrorCode::kInvalid, "the name given to --comm is empty");
    AddOnce(config.comms, comm.substr(0, kCommLength));
  }
  for (const std::string& cgroup : options.cgroups) {
    if (cgroup.empty()) return Fail(ErrorCode::kInvalid, "the path given to --cgroup is empty");
    AddOnce(config.cgroups, cgroup);
  }
  return SetContainers(options, config);
}

Result<void> CheckTargets(const RecordConfig& config) {
  const bool has_targets = !config.pids.empty() || !config.comms.empty() ||
                           !config.cgroups.empty() || !config.containers.empty() ||
                           !config.container_names.empty();
  if (config.command.empty() || !has_targets) return {};
  return Fail(
      ErrorCode::kInvalid,
      "a command ('{}') cannot be combined with --pid, --comm, --cgroup, --container, --pod "
      "or --namespace; record one or the other",
      config.command.front());
}

// A clock has a frequency, a counted event a period.
Result<void> SetEvent(const RecordOptions& options, RecordConfig& config) {
  if (options.event) {
    ASSIGN_OR_RETURN(config.event.kind, ParseEvent(*options.event));
  }
  const std::string_view event = FactsOf(config.event.kind).name;
  if (options.frequency) {
    if (config.event.counted()) {
      return Fail(ErrorCode::kInvalid,
                  "--event {} has no frequency: each of them is counted; for fewer samples give "
                  "--period instead of --frequency",
                  event);
    }
    ASSIGN_OR_RETURN(config.frequency, ParseFrequency(*options.frequency));
  }
  if (options.period) {
    if (!config.event.counted()) {
      return Fail(ErrorCode::kInvalid,
                  "--period is for events that are counted, such as page-faults; for --event {} "
                  "give --frequency",
                  event);
    }
    ASSIGN_OR_RETURN(config.event.period, ParseEventPeriod(*options.period));
  }
  return {};
}

}  // namespace

Result<RecordConfig> MakeRecordConfig(const RecordOptions& options) {
  RecordConfig config;
  RETURN_IF_ERROR(SetTargets(options, config));
  config.command = options.command;
  RETURN_IF_ERROR(CheckTargets(config));
  if (options.duration) {
    ASSIGN_OR_RETURN(config.duration, ParseDuration(*options.duration));
  }
  RETURN_IF_ERROR(SetEvent(options, config));
  if (options.unwind_memory) {
    ASSIGN_OR_RETURN(config.unwind_memory, ParseUnwindMemory(*options.unwind_memory));
  }
  std::optional<OutputFormat> format;
  if (options.format) {
    ASSIGN_OR_RETURN(format, ParseOutputFormat(*options.format));
  }
  ASSIGN_OR_RETURN(config.outputs, ChooseOutputs(options.outputs, format));
  ASSIGN_OR_RETURN(config.labels, ParseLabels(options.labels));
  config.kernel_stacks = !options.no_kernel;
  config.inlines = !options.no_inlines;
  config.dwarf = !options.no_dwarf;
  if (options.demangle) {
    ASSIGN_OR_RETURN(config.demangling, ParseDemangling(*options.demangle));
  }
  config.sandbox = !options.no_sandbox;
  config.quiet = options.quiet;
  if (!options.stats.empty()) {
    ASSIGN_OR_RETURN(config.stats, ParseStatsFormat(options.stats));
  }
  return config;
}

}  // namespace pyrometer
