// SPDX-License-Identifier: Apache-2.0
#include "config/option_overlay.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace pyrometer {
namespace {

using Kind = ConfigNode::Kind;

// Shells have their own ${NAME}; what arrives here is meant as it is.
ConfigNode Scalar(std::string text, const char* option) {
  return {.kind = Kind::kScalar, .text = std::move(text), .where = option, .expandable = false};
}

void Set(ConfigNode& map, std::string key, ConfigNode value) {
  std::erase_if(map.children, [&key](const ConfigNode& child) { return child.key == key; });
  value.key_where = value.where;
  value.key = std::move(key);
  map.children.push_back(std::move(value));
}

// The map below `key`, made if there is none. What is there and no map stays, to be complained
// about by the reader, and the option goes nowhere: null.
ConfigNode* MapBelow(ConfigNode& map, const std::string& key, const char* option) {
  const auto found = std::ranges::find(map.children, key, &ConfigNode::key);
  if (found == map.children.end()) {
    Set(map, key, {.kind = Kind::kMap, .where = option});
    return &map.children.back();
  }
  if (found->kind == Kind::kNothing) found->kind = Kind::kMap;
  return found->kind == Kind::kMap ? &*found : nullptr;
}

void SetScalar(ConfigNode* map, const char* key, const std::optional<std::string>& text,
               const char* option) {
  if (map != nullptr && text) Set(*map, key, Scalar(*text, option));
}

void SetList(ConfigNode* map, const char* key, const std::vector<std::string>& texts,
             const char* option) {
  if (map == nullptr || texts.empty()) return;
  ConfigNode list{.kind = Kind::kList, .where = option};
  for (const std::string& text : texts) list.children.push_back(Scalar(text, option));
  Set(*map, key, std::move(list));
}

void SetFilter(const AgentOptions& options, ConfigNode& root) {
  if (options.comms.empty() && options.cgroups.empty() && options.exclude_cgroups.empty()) return;
  ConfigNode* const filter = MapBelow(root, "filter", "--comm");
  SetList(filter, "comms", options.comms, "--comm");
  SetList(filter, "cgroups", options.cgroups, "--cgroup");
  SetList(filter, "exclude_cgroups", options.exclude_cgroups, "--exclude-cgroup");
}

void SetLabels(const AgentOptions& options, ConfigNode& root, std::vector<std::string>& errors) {
  std::vector<std::string> names;
  for (const std::string& label : options.labels) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos) {
      errors.push_back(
          fmt::format("--label: label '{}' has no '='; write it like cluster=blue", label));
      continue;
    }
    std::string name = label.substr(0, equals);
    if (std::ranges::find(names, name) != names.end()) {
      errors.push_back(fmt::format("--label: label '{}' is given twice", name));
      continue;
    }
    names.push_back(name);
    ConfigNode* const labels = MapBelow(root, "labels", "--label");
    if (labels != nullptr) Set(*labels, name, Scalar(label.substr(equals + 1), "--label"));
  }
}

// The agent's directory may change, and it is not that of a later reader of the file.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return path.empty() || error ? path : absolute.lexically_normal().string();
}

// Sinks of one type, given by one option. Several have numbers in their names: parca, parca-2.
struct SinkOptionValues {
  const char* option;
  const char* type;
  const char* key;
  const std::vector<std::string>& values;
};

void AddSinks(const SinkOptionValues& given, ConfigNode& sinks) {
  for (size_t i = 0; i < given.values.size(); ++i) {
    ConfigNode sink{.kind = Kind::kMap, .where = given.option};
    Set(sink, "type", Scalar(given.type, given.option));
    if (i > 0) Set(sink, "name", Scalar(fmt::format("{}-{}", given.type, i + 1), given.option));
    Set(sink, given.key, Scalar(given.values[i], given.option));
    sinks.children.push_back(std::move(sink));
  }
}

void SetSinks(const AgentOptions& options, ConfigNode& root) {
  std::vector<std::string> directories;
  for (const std::string& path : options.output_directories) directories.push_back(Absolute(path));
  ConfigNode sinks{.kind = Kind::kList, .where = "--output-directory"};
  AddSinks({"--pyroscope", "pyroscope", "url", options.pyroscope_urls}, sinks);
  AddSinks({"--parca", "parca", "address", options.parca_addresses}, sinks);
  AddSinks({"--otlp", "otlp", "endpoint", options.otlp_endpoints}, sinks);
  AddSinks({"--output-directory", "file", "directory", directories}, sinks);
  if (!sinks.children.empty()) Set(root, "sinks", std::move(sinks));
}

}  // namespace

std::vector<std::string> OverlayOptions(const AgentOptions& options, ConfigNode& root) {
  std::vector<std::string> errors;
  root.kind = Kind::kMap;
  SetScalar(&root, "frequency", options.frequency, "--frequency");
  SetScalar(&root, "window", options.window, "--window");
  if (options.no_kernel) Set(root, "kernel_stacks", Scalar("false", "--no-kernel"));
  if (options.no_inlines) Set(root, "inlines", Scalar("false", "--no-inlines"));
  if (options.no_dwarf) {
    SetScalar(MapBelow(root, "symbols", "--no-dwarf"), "dwarf", "false", "--no-dwarf");
  }
  if (options.demangle) {
    SetScalar(MapBelow(root, "symbols", "--demangle"), "demangle", options.demangle, "--demangle");
  }
  SetLabels(options, root, errors);
  SetFilter(options, root);
  if (options.listen) {
    SetScalar(MapBelow(root, "server", "--listen"), "listen", options.listen, "--listen");
  }
  if (options.spool_directory) {
    SetScalar(MapBelow(root, "spool", "--spool-directory"), "directory",
              Absolute(*options.spool_directory), "--spool-directory");
  }
  SetSinks(options, root);
  return errors;
}

}  // namespace pyrometer
