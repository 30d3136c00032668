// SPDX-License-Identifier: Apache-2.0
#include "config/agent_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "config/agent_config_reader.h"
#include "config/option_overlay.h"
#include "config/yaml_document.h"

namespace pyrometer {
namespace {

// A file that is no configuration at all could fill a terminal, or the journal.
constexpr size_t kMostErrors = 100;

std::optional<std::string> FileToRead(const AgentOptions& options) {
  if (options.config_file) return options.config_file;
  // One that may be there and cannot be read is an error, and not the same as none.
  const bool is_missing =
      ::access(kDefaultConfigFile, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
  return is_missing ? std::nullopt : std::optional<std::string>(kDefaultConfigFile);
}

YamlDocument ReadYamlFile(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kLongestYaml);
  if (text) return ReadYaml(*text, path);
  return {.root = {}, .errors = {text.error().message()}};
}

AgentConfigReport Report(YamlDocument document, const AgentOptions& options,
                         const Environment& environment) {
  AgentConfigReport report;
  ConfigReading reading{.environment = environment, .errors = std::move(document.errors)};
  for (std::string& error : OverlayOptions(options, document.root)) {
    reading.errors.push_back(std::move(error));
  }
  report.config = ReadAgentConfig(document.root, reading);
  report.errors = std::move(reading.errors);
  if (report.errors.size() > kMostErrors) {
    const size_t others = report.errors.size() - kMostErrors;
    report.errors.resize(kMostErrors);
    report.errors.push_back(fmt::format("{} more errors", others));
  }
  return report;
}

Result<AgentConfig> ConfigOf(AgentConfigReport report) {
  if (report.errors.empty()) return std::move(report.config);
  const size_t others = report.errors.size() - 1;
  if (others == 0) return Error(ErrorCode::kInvalid, report.errors.front());
  return Fail(ErrorCode::kInvalid, "{} (and {} more: pyrometer agent --check-config)",
              report.errors.front(), others);
}

}  // namespace

AgentConfigReport ExamineAgentConfig(const AgentOptions& options, const Environment& environment) {
  const std::optional<std::string> file = FileToRead(options);
  AgentConfigReport report =
      Report(file ? ReadYamlFile(*file) : YamlDocument{}, options, environment);
  report.file = file;
  return report;
}

Result<AgentConfig> MakeAgentConfig(const AgentOptions& options, const Environment& environment) {
  return ConfigOf(ExamineAgentConfig(options, environment));
}

Result<AgentConfig> LoadAgentConfig(const std::string& path, const Environment& environment) {
  AgentOptions options;
  options.config_file = path;
  return MakeAgentConfig(options, environment);
}

Result<AgentConfig> ParseAgentConfig(std::string_view text, const std::string& name,
                                     const Environment& environment) {
  return ConfigOf(Report(ReadYaml(text, name), {}, environment));
}

}  // namespace pyrometer
