// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/agent_config.h"
#include "config/environment.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Read if it exists and no other is named.
inline constexpr const char* kDefaultConfigFile = "/etc/pyrometer/pyrometer.yaml";

// The options of `pyrometer agent` as words, not yet parsed. What is given overrides the file, also
// when that is read again.
struct AgentOptions {
  std::optional<std::string> config_file;  // nothing: kDefaultConfigFile, or all defaults
  std::optional<std::string> frequency;
  std::optional<std::string> window;
  bool no_kernel = false;
  bool no_inlines = false;
  bool no_dwarf = false;
  std::optional<std::string> demangle;
  std::vector<std::string> labels;  // "name=value": added to the file's
  // Each list replaces the file's.
  std::vector<std::string> comms;
  std::vector<std::string> cgroups;
  std::vector<std::string> exclude_cgroups;
  std::optional<std::string> listen;
  std::optional<std::string> spool_directory;
  // Sinks with all else by default; if there is any, it replaces all of the file's.
  std::vector<std::string> pyroscope_urls;
  std::vector<std::string> parca_addresses;
  std::vector<std::string> otlp_endpoints;  // HTTP
  std::vector<std::string> output_directories;
};

// A configuration as it was found, right or wrong.
struct AgentConfigReport {
  AgentConfig config;               // what is wrong has its default
  std::optional<std::string> file;  // that was read; nothing: there is none
  std::vector<std::string> errors;  // one line each, for users; none: `config` can be used
};

// Reads the file, puts the options over it and checks everything, as far as that is possible after
// an error.
AgentConfigReport ExamineAgentConfig(const AgentOptions& options,
                                     const Environment& environment = ProcessEnvironment());

// The same for who only wants to go on. May be called again, at SIGHUP. Errors: kInvalid, with the
// first error and the number of others.
Result<AgentConfig> MakeAgentConfig(const AgentOptions& options,
                                    const Environment& environment = ProcessEnvironment());

// Of a file alone, and of its text; `name` is the file's, for messages.
Result<AgentConfig> LoadAgentConfig(const std::string& path, const Environment& environment);
Result<AgentConfig> ParseAgentConfig(std::string_view text, const std::string& name,
                                     const Environment& environment);

}  // namespace pyrometer
