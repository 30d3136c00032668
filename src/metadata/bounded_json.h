// SPDX-License-Identifier: Apache-2.0
// JSON from servers: what is of another type than it should be counts as not there.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace pyrometer {

// Of labels and annotations; a profile's labels may not be longer.
inline constexpr size_t kLongestJsonText = 2048;

// Nesting deeper than 32 is not looked at. What is no JSON is_discarded(). `wanted` may leave out
// the value of a key, at the depth of its object's values (1 in the outermost object).
nlohmann::json ParseJson(std::string_view text,
                         bool (*wanted)(int depth, std::string_view key) = nullptr);

// The value at `key`, or null.
const nlohmann::json& At(const nlohmann::json& parent, const char* key);
// "" if it is no text or too long.
std::string TextAt(const nlohmann::json& parent, const char* key);
// The texts of a map, without those that are too long.
std::map<std::string, std::string> TextsAt(const nlohmann::json& parent, const char* key);

}  // namespace pyrometer
