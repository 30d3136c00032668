// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pyrometer/demangling.h"
#include "pyrometer/event.h"
#include "pyrometer/ids.h"

namespace pyrometer {

enum class OutputFormat { kPprof, kFolded, kHtml, kText };

enum class StatsFormat { kText, kJson };

struct OutputFile {
  std::string path;  // "-": standard output
  OutputFormat format = OutputFormat::kPprof;
};

// Containers by what Kubernetes, or else their runtime, calls them: those that match one of each
// list that is not empty.
struct ContainerNames {
  std::vector<std::string> containers{};
  std::vector<std::string> pods{};
  std::vector<std::string> namespaces{};

  bool empty() const { return containers.empty() && pods.empty() && namespaces.empty(); }
};

// What to record; made by src/cli from the command line of `pyrometer record`.
struct RecordConfig {
  // Targets: samples are taken of what matches any. Without targets and command: the whole machine.
  std::vector<Pid> pids;             // with their future children
  std::vector<std::string> comms;    // process or thread names
  std::vector<std::string> cgroups;  // paths, absolute or below the cgroup mount; with descendants
  std::vector<std::string> containers;  // ids or unique prefixes of at least 12 hex digits
  ContainerNames container_names;       // also those that start later

  // The recording ends after this, or at Ctrl-C or the command's end. Nothing: no limit.
  std::optional<std::chrono::nanoseconds> duration;
  SampledEvent event;
  Hertz frequency{99};  // of a clock
  bool kernel_stacks = true;
  bool inlines = true;  // functions that were inlined into others are frames
  bool dwarf = true;    // debug information is read
  Demangling demangling = Demangling::kSimple;
  std::optional<size_t> unwind_memory;  // kernel memory for unwind tables, in bytes
  bool sandbox = true;                  // in which files of profiled programs are read
  std::vector<OutputFile> outputs;      // none: the top functions on standard output
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::string> command;
  bool quiet = false;                // no progress line
  std::optional<StatsFormat> stats;  // nothing: the accounting line is all
};

}  // namespace pyrometer
