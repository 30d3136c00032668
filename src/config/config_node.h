// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pyrometer {

// A piece of a configuration as it was written, not yet understood: a tree, whose nodes know where
// they come from.
struct ConfigNode {
  enum class Kind { kNothing, kScalar, kList, kMap };

  Kind kind = Kind::kNothing;
  std::string text{};      // of a scalar
  std::string where{};     // "pyrometer.yaml:3:5" (line, column), "--window"
  bool expandable = true;  // ${NAME} in `text` means the environment
  std::string key{};       // in a map: its name there
  std::string key_where{};
  std::vector<ConfigNode> children{};  // of a list or a map, in the order written
};

// The child of a map with this key, or null.
inline const ConfigNode* Find(const ConfigNode& map, std::string_view key) {
  for (const ConfigNode& child : map.children) {
    if (child.key == key) return &child;
  }
  return nullptr;
}

}  // namespace pyrometer
