// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <exception>
#include <sstream>
#include <utility>

#include "base/printable.h"

namespace pyrometer {
namespace {

using Kind = ConfigNode::Kind;

// yaml-cpp counts both from 0.
std::string Where(const std::string& name, const YAML::Mark& mark) {
  if (mark.is_null()) return name;
  return fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
}

// Builds the tree from yaml-cpp's events. Ends the parsing with a YAML::ParserException, before
// yaml-cpp recurses into what is nested too deeply.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& name, YamlDocument& document) : name_(name), document_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      throw YAML::ParserException(mark, "a second document begins; one file is one configuration");
    }
  }
  void OnDocumentEnd() override {}

  // yaml-cpp's mark of a value that is not there is that of whatever comes next.
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Allow(mark, "", anchor);
    ConfigNode node = Node(Kind::kNothing, mark);
    if (ExpectsValue()) node.where = open_.back().pending_where;
    Add(std::move(node), mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { Allow(mark, "", anchor); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Allow(mark, tag, anchor);
    ConfigNode node = Node(Kind::kScalar, mark);
    node.text = value;
    Add(std::move(node), mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  // A list or map whose end has not come yet.
  struct OpenNode {
    ConfigNode node;
    YAML::Mark mark;
    bool has_key = false;  // of a map: the next node is the value of `pending_key`
    std::string pending_key{};
    std::string pending_where{};
  };

  bool ExpectsValue() const { return !open_.empty() && open_.back().has_key; }

  ConfigNode Node(Kind kind, const YAML::Mark& mark) {
    if (++nodes_ > kMostYamlNodes) {
      throw YAML::ParserException(
          mark, fmt::format("more than {} values; is this the right file?", kMostYamlNodes));
    }
    return {.kind = kind, .where = Where(name_, mark)};
  }

  // Plain scalars come with the tag "?", quoted ones with "!".
  static void Allow(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      throw YAML::ParserException(mark,
                                  "anchors (&name) and aliases (*name) are not supported; "
                                  "repeat the value, or quote it if it is a text");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw YAML::ParserException(mark, "tags are not supported; quote the value if it is a text");
    }
  }

  void Open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    Allow(mark, tag, anchor);
    if (open_.size() == kDeepestYaml) {
      throw YAML::ParserException(mark, fmt::format("nested deeper than {} levels", kDeepestYaml));
    }
    open_.push_back({.node = Node(kind, mark), .mark = mark});
  }

  void Close() {
    OpenNode closed = std::move(open_.back());
    open_.pop_back();
    Add(std::move(closed.node), closed.mark);
  }

  void Add(ConfigNode node, const YAML::Mark& mark) {
    if (open_.empty()) {
      document_.root = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == Kind::kMap && !parent.has_key) return SetKey(parent, node, mark);
    if (parent.has_key) {
      parent.has_key = false;
      const ConfigNode* const first = Find(parent.node, parent.pending_key);
      if (first != nullptr) return RefuseRepeated(parent, *first);
      node.key = std::move(parent.pending_key);
      node.key_where = std::move(parent.pending_where);
    }
    parent.node.children.push_back(std::move(node));
  }

  static void SetKey(OpenNode& parent, ConfigNode& key, const YAML::Mark& mark) {
    if (key.kind != Kind::kScalar) {
      throw YAML::ParserException(mark, "expected a name before the colon");
    }
    parent.has_key = true;
    parent.pending_key = std::move(key.text);
    parent.pending_where = std::move(key.where);
  }

  void RefuseRepeated(const OpenNode& parent, const ConfigNode& first) {
    document_.errors.push_back(fmt::format("{}: key '{}' is given twice, first at {}",
                                           parent.pending_where, Printable(first.key, 60),
                                           first.key_where));
  }

  const std::string& name_;
  YamlDocument& document_;
  std::vector<OpenNode> open_;
  size_t nodes_ = 0;
  size_t documents_ = 0;
};

void Parse(std::string_view text, TreeBuilder& builder) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(builder)) {
  }
}

}  // namespace

YamlDocument ReadYaml(std::string_view text, const std::string& name) {
  YamlDocument document;
  if (text.size() > kLongestYaml) {
    document.errors.push_back(
        fmt::format("{}: larger than {} bytes; is this the right file?", name, kLongestYaml));
    return document;
  }
  TreeBuilder builder(name, document);
  try {
    Parse(text, builder);
  } catch (const YAML::Exception& error) {
    document.errors.push_back(fmt::format("{}: {}", Where(name, error.mark), error.msg));
  } catch (const std::exception& error) {
    document.errors.push_back(fmt::format("{}: not valid YAML ({})", name, error.what()));
  }
  if (document.errors.empty() && document.root.kind != Kind::kMap &&
      document.root.kind != Kind::kNothing) {
    document.errors.push_back(
        fmt::format("{}: expected keys with values, like 'frequency: 99'", document.root.where));
    document.root = {};
  }
  return document;
}

}  // namespace pyrometer
