// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/record_config.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The options of `record` as words, not yet parsed.
struct RecordOptions {
  std::vector<std::string> pids;
  std::vector<std::string> comms;
  std::vector<std::string> cgroups;
  std::vector<std::string> containers;
  std::vector<std::string> pods;
  std::vector<std::string> namespaces;
  std::optional<std::string> duration;
  std::optional<std::string> event;
  std::optional<std::string> frequency;
  std::optional<std::string> period;
  std::optional<std::string> unwind_memory;
  std::vector<std::string> outputs;
  std::optional<std::string> format;
  std::vector<std::string> labels;
  bool no_kernel = false;
  bool no_inlines = false;
  bool no_dwarf = false;
  std::optional<std::string> demangle;
  bool no_sandbox = false;
  bool quiet = false;
  std::string stats;  // "": not asked for
  std::vector<std::string> command;
};

// Parses them. Errors: kInvalid for a word that cannot be understood, and for options that cannot
// be combined.
Result<RecordConfig> MakeRecordConfig(const RecordOptions& options);

}  // namespace pyrometer
