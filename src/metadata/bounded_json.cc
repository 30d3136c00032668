// SPDX-License-Identifier: Apache-2.0
#include "metadata/bounded_json.h"

namespace pyrometer {

using nlohmann::json;

json ParseJson(std::string_view text, bool (*wanted)(int depth, std::string_view key)) {
  constexpr int kDeepest = 32;
  const auto keep = [wanted](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) return false;
    if (event != json::parse_event_t::key || wanted == nullptr) return true;
    return wanted(depth, parsed.get_ref<const std::string&>());
  };
  return json::parse(text, keep, /*allow_exceptions=*/false);
}

const json& At(const json& parent, const char* key) {
  static const json nothing;
  if (!parent.is_object()) return nothing;
  const auto at = parent.find(key);
  return at == parent.end() ? nothing : *at;
}

std::string TextAt(const json& parent, const char* key) {
  const json& value = At(parent, key);
  if (!value.is_string()) return "";
  const auto& text = value.get_ref<const std::string&>();
  return text.size() <= kLongestJsonText ? text : "";
}

std::map<std::string, std::string> TextsAt(const json& parent, const char* key) {
  std::map<std::string, std::string> texts;
  const json& map = At(parent, key);
  if (!map.is_object()) return texts;
  for (const auto& [name, value] : map.items()) {
    if (!value.is_string() || name.size() > kLongestJsonText) continue;
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() <= kLongestJsonText) texts.emplace(name, text);
  }
  return texts;
}

}  // namespace pyrometer
