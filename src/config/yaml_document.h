// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config_node.h"

namespace pyrometer {

// Far beyond any configuration, and what keeps a wrong file (a log, a disk image) from filling the
// memory or the stack.
inline constexpr size_t kLongestYaml = size_t{1} << 20;
inline constexpr size_t kDeepestYaml = 16;
inline constexpr size_t kMostYamlNodes = 10'000;

struct YamlDocument {
  ConfigNode root;                    // a map, or nothing if the text is empty or only comments
  std::vector<std::string> errors{};  // "name:line:column: what is wrong"; none: all was read
};

// Reads one YAML document. `name` is the file's for messages. Beyond the limits above, not allowed
// are: a key given twice (YAML 1.2, section 3.2.1.3), a key that is a list or map, anchors, aliases
// and tags, which only save typing, and a second document. The only place that knows yaml-cpp; its
// exceptions end here.
YamlDocument ReadYaml(std::string_view text, const std::string& name);

}  // namespace pyrometer
