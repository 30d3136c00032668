// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config_node.h"
#include "config/config_values.h"
#include "config/environment.h"

namespace pyrometer {

// What reading a configuration needs, and what it finds.
struct ConfigReading {
  const Environment& environment;
  std::vector<std::string> errors{};   // "file:3:5: window: found 'x', expected a duration ..."
  std::set<std::string> known_keys{};  // every key that was asked for: "sinks[].tls.ca_file"
};

// A scalar with the environment put in.
struct ConfigText {
  std::string text;
  bool used_environment = false;  // some of it comes from there
};

// The reader of one map of a configuration. Every key that may be there is asked for once, and what
// is not there keeps its value; RefuseOthers() then complains about the rest. Errors do not stop
// the reading: all of them are of use to somebody who corrects a file. They never tell a value that
// came from the environment.
class ConfigSection {
 public:
  // `node` is the map, or null if nothing was written; `path` is "" or its key's and ends in a dot.
  // Both references must outlive this.
  ConfigSection(const ConfigNode* node, std::string path, ConfigReading& reading);

  template <typename T>
  void Read(std::string_view key, T& target, const ValueKind<T>& kind) {
    const ConfigNode* const node = Ask(key);
    if (node == nullptr) return;
    if (std::optional<T> value = Parse(*node, PathOf(key), kind)) target = *std::move(value);
  }

  // The values of a list, in order.
  void ReadSequence(std::string_view key, std::vector<std::string>& target,
                    const ValueKind<std::string>& kind);

  // The same, each value once.
  void ReadList(std::string_view key, std::vector<std::string>& target,
                const ValueKind<std::string>& kind);

  // The names and texts of a map below `key`. The node is for Complain().
  struct NamedText {
    const ConfigNode* node;
    ConfigText value;
  };
  std::vector<NamedText> ReadTexts(std::string_view key);

  // A text that may not be written down: an error unless (some of) it is from the environment.
  void ReadSecret(std::string_view key, std::string& target, std::string_view file_key);

  // The map below `key`.
  ConfigSection Section(std::string_view key);

  // The maps of the list below `key`; nothing if the key is not there.
  std::optional<std::vector<ConfigSection>> Sections(std::string_view key);

  // True if the key was written, whatever its value.
  bool Has(std::string_view key) const;

  // Notes an error of this key: at its value, or at this section if it is not there.
  void Complain(std::string_view key, std::string_view message);
  // Of a node below `key`, as from ReadTexts().
  void Complain(std::string_view key, const ConfigNode& node, std::string_view message);

  // Complains about every key that was not asked for.
  void RefuseOthers();

  // True if there were errors in it, those of sections below it not included.
  bool HasErrors() const { return has_errors_; }

 private:
  const ConfigNode* Ask(std::string_view key);
  std::string PathOf(std::string_view key) const { return path_ + std::string(key); }

  void AddError(const ConfigNode& node, const std::string& path, std::string_view message);
  void Unexpected(const ConfigNode& node, const std::string& path, std::string_view expected);

  // Nothing, with an error noted, if `node` is no scalar or cannot be expanded.
  std::optional<ConfigText> Expand(const ConfigNode& node, const std::string& path,
                                   std::string_view expected);

  template <typename T>
  std::optional<T> Parse(const ConfigNode& node, const std::string& path,
                         const ValueKind<T>& kind) {
    const std::optional<ConfigText> text = Expand(node, path, kind.expected);
    if (!text) return std::nullopt;
    std::optional<T> value = kind.parse(text->text);
    if (!value) Unexpected(node, path, kind.expected);
    return value;
  }

  const ConfigNode* node_;
  std::string path_;
  ConfigReading* reading_;
  std::vector<std::string> asked_;
  bool has_errors_ = false;
};

}  // namespace pyrometer
