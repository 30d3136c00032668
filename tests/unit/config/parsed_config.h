// SPDX-License-Identifier: Apache-2.0
// Configurations as tests write them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/agent_options.h"

namespace pyrometer {

inline std::optional<std::string> Variable(const std::string& name) {
  static const std::map<std::string, std::string> kVariables = {{"URL", "http://pyroscope:4040"},
                                                                {"PASSWORD", "hunter2"},
                                                                {"FREQUENCY", "49"},
                                                                {"WORDS", "a: [b"},
                                                                {"EMPTY", ""},
                                                                {"LINES", "a\nb"},
                                                                {"DOLLAR", "${URL}"}};
  const auto found = kVariables.find(name);
  if (found == kVariables.end()) return std::nullopt;
  return found->second;
}

inline AgentConfig Parse(std::string_view text) {
  Result<AgentConfig> config = ParseAgentConfig(text, "p.yaml", Variable);
  if (config) return *std::move(config);
  ADD_FAILURE() << text << "\n" << config.error().message();
  return {};
}

inline SinkConfig ParseSink(std::string_view keys) {
  const AgentConfig config = Parse(fmt::format("sinks: [{{ {} }}]", keys));
  if (config.sinks.size() == 1) return config.sinks[0];
  ADD_FAILURE() << keys << " made " << config.sinks.size() << " sinks";
  return {};
}

inline std::string ErrorOf(std::string_view text) {
  const Result<AgentConfig> config = ParseAgentConfig(text, "p.yaml", Variable);
  if (config) return "no error";
  EXPECT_EQ(config.error().code(), ErrorCode::kInvalid);
  return config.error().message();
}

struct Wrong {
  const char* text;
  const char* error;
};

}  // namespace pyrometer
