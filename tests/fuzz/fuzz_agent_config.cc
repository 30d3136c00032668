// SPDX-License-Identifier: Apache-2.0
#include "config/agent_config_text.h"
#include "config/agent_options.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "UNSET") return std::nullopt;
    return name;
  };
  const Result<AgentConfig> config = ParseAgentConfig(text, "f", variable);
  if (!config) {
    Require(config.error().code() == ErrorCode::kInvalid && !config.error().message().empty());
    return 0;
  }
  Require(config->frequency.value > 0 && config->window.count() > 0);
  for (const SinkConfig& sink : config->sinks) {
    Require(!sink.name.empty() && sink.url.empty() != sink.directory.empty());
  }
  Require(!Describe(*config).empty());
  return 0;
}
