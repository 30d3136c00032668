// SPDX-License-Identifier: Apache-2.0
#include "config/config_section.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "config/closest_name.h"

namespace pyrometer {
namespace {

using Kind = ConfigNode::Kind;

constexpr size_t kLongestShown = 80;
constexpr std::string_view kMap = "keys with values, like 'key: value' on lines of their own";
constexpr std::string_view kList = "a list, like [a, b]";

// As it was written, but for the user and password of a URL.
std::string ShownText(std::string_view text) {
  std::string shown = Printable(text, kLongestShown);
  const size_t scheme = shown.find("://");
  if (shown.find('@') == std::string::npos || scheme == std::string::npos) {
    return fmt::format("'{}'", shown);
  }
  return fmt::format("'{}...@...'", shown.substr(0, scheme + 3));
}

std::string Shown(const ConfigNode& node) {
  switch (node.kind) {
    case Kind::kNothing:
      return "nothing";
    case Kind::kScalar:
      return ShownText(node.text);
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      break;
  }
  return "keys with values";
}

// "sinks[2].url" is the key "sinks[].url".
std::string WithoutIndexes(std::string_view path) {
  std::string key;
  bool in_brackets = false;
  for (const char c : path) {
    if (c == ']') in_brackets = false;
    if (!in_brackets) key += c;
    if (c == '[') in_brackets = true;
  }
  return key;
}

}  // namespace

ConfigSection::ConfigSection(const ConfigNode* node, std::string path, ConfigReading& reading)
    : node_(node), path_(std::move(path)), reading_(&reading) {}

const ConfigNode* ConfigSection::Ask(std::string_view key) {
  asked_.emplace_back(key);
  reading_->known_keys.insert(WithoutIndexes(PathOf(key)));
  return node_ == nullptr ? nullptr : Find(*node_, key);
}

bool ConfigSection::Has(std::string_view key) const {
  return node_ != nullptr && Find(*node_, key) != nullptr;
}

void ConfigSection::AddError(const ConfigNode& node, const std::string& path,
                             std::string_view message) {
  has_errors_ = true;
  // The command line's options name themselves.
  const bool is_option = node.where.starts_with("--");
  reading_->errors.push_back(is_option ? fmt::format("{}: {}", node.where, message)
                                       : fmt::format("{}: {}: {}", node.where, path, message));
}

void ConfigSection::Unexpected(const ConfigNode& node, const std::string& path,
                               std::string_view expected) {
  AddError(node, path, fmt::format("found {}, expected {}", Shown(node), expected));
}

void ConfigSection::Complain(std::string_view key, std::string_view message) {
  const ConfigNode* const there = node_ == nullptr ? nullptr : Find(*node_, key);
  if (there != nullptr) return AddError(*there, PathOf(key), message);
  AddError(node_ == nullptr ? ConfigNode{} : *node_, PathOf(key), message);
}

void ConfigSection::Complain(std::string_view key, const ConfigNode& node,
                             std::string_view message) {
  AddError(node, PathOf(key), message);
}

std::optional<ConfigText> ConfigSection::Expand(const ConfigNode& node, const std::string& path,
                                                std::string_view expected) {
  if (node.kind != Kind::kScalar) {
    Unexpected(node, path, expected);
    return std::nullopt;
  }
  ConfigText text{.text = node.text};
  if (node.expandable) {
    Result<Expanded> expanded = ExpandEnvironment(node.text, reading_->environment);
    if (!expanded) {
      AddError(node, path, expanded.error().message());
      return std::nullopt;
    }
    text = {.text = std::move(expanded->text), .used_environment = expanded->used_environment};
  }
  if (!IsPrintable(text.text)) {
    AddError(node, path, "has line ends, other control characters or bytes that are not UTF-8");
    return std::nullopt;
  }
  return text;
}

void ConfigSection::ReadSequence(std::string_view key, std::vector<std::string>& target,
                                 const ValueKind<std::string>& kind) {
  const ConfigNode* const node = Ask(key);
  if (node == nullptr || node->kind == Kind::kNothing) return;
  if (node->kind != Kind::kList) return Unexpected(*node, PathOf(key), kList);
  for (size_t i = 0; i < node->children.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", PathOf(key), i);
    std::optional<std::string> value = Parse(node->children[i], path, kind);
    if (value) target.push_back(*std::move(value));
  }
}

void ConfigSection::ReadList(std::string_view key, std::vector<std::string>& target,
                             const ValueKind<std::string>& kind) {
  std::vector<std::string> values;
  ReadSequence(key, values, kind);
  for (std::string& value : values) {
    if (std::ranges::find(target, value) == target.end()) target.push_back(std::move(value));
  }
}

std::vector<ConfigSection::NamedText> ConfigSection::ReadTexts(std::string_view key) {
  const ConfigNode* const node = Ask(key);
  if (node == nullptr || node->kind == Kind::kNothing) return {};
  if (node->kind != Kind::kMap) {
    Unexpected(*node, PathOf(key), kMap);
    return {};
  }
  std::vector<NamedText> texts;
  for (const ConfigNode& child : node->children) {
    const std::string path = fmt::format("{}.{}", PathOf(key), Printable(child.key, kLongestShown));
    std::optional<ConfigText> text = Expand(child, path, "a text");
    if (text) texts.push_back({.node = &child, .value = *std::move(text)});
  }
  return texts;
}

void ConfigSection::ReadSecret(std::string_view key, std::string& target,
                               std::string_view file_key) {
  const ConfigNode* const node = Ask(key);
  if (node == nullptr) return;
  std::optional<ConfigText> text = Expand(*node, PathOf(key), "a text");
  if (!text || text->text.empty()) return;
  if (!text->used_environment) {
    return Complain(key,
                    fmt::format("a secret may not be written here; put it into a file and give "
                                "'{}', or take it from the environment: '${{NAME}}'",
                                file_key));
  }
  target = std::move(text->text);
}

ConfigSection ConfigSection::Section(std::string_view key) {
  const ConfigNode* node = Ask(key);
  if (node != nullptr && node->kind != Kind::kMap) {
    if (node->kind != Kind::kNothing) Unexpected(*node, PathOf(key), kMap);
    node = nullptr;
  }
  return {node, PathOf(key) + ".", *reading_};
}

std::optional<std::vector<ConfigSection>> ConfigSection::Sections(std::string_view key) {
  const ConfigNode* const node = Ask(key);
  if (node == nullptr || node->kind == Kind::kNothing) return std::nullopt;
  std::vector<ConfigSection> sections;
  if (node->kind != Kind::kList) {
    Unexpected(*node, PathOf(key), "a list, whose items begin with '- '");
    return sections;
  }
  for (size_t i = 0; i < node->children.size(); ++i) {
    const ConfigNode& child = node->children[i];
    const std::string path = fmt::format("{}[{}]", PathOf(key), i);
    if (child.kind == Kind::kMap) {
      sections.emplace_back(&child, path + ".", *reading_);
    } else {
      Unexpected(child, path, kMap);
    }
  }
  return sections;
}

void ConfigSection::RefuseOthers() {
  if (node_ == nullptr) return;
  for (const ConfigNode& child : node_->children) {
    if (std::ranges::find(asked_, child.key) != asked_.end()) continue;
    has_errors_ = true;
    const std::optional<std::string> closest = ClosestName(child.key, asked_);
    const std::string hint = closest ? fmt::format("did you mean '{}'?", *closest)
                                     : "known here: " + absl::StrJoin(asked_, ", ");
    reading_->errors.push_back(fmt::format("{}: {}: unknown key; {}", child.key_where,
                                           PathOf(Printable(child.key, kLongestShown)), hint));
  }
}

}  // namespace pyrometer
