// SPDX-License-Identifier: Apache-2.0
#include "cli/agent_setup.h"

#include "config/agent_options.h"

namespace pyrometer {

AgentSetup FindAgentSetup() {
  const AgentConfigReport report = ExamineAgentConfig({});
  const AgentConfig& config = report.config;
  AgentSetup setup;
  setup.config_file = report.file.value_or("");
  setup.config_errors = report.errors;
  if (config.spool.max_size > 0) setup.directories.push_back(config.spool.directory);
  for (const SinkConfig& sink : config.sinks) {
    if (sink.type == SinkType::kFile) setup.directories.push_back(sink.directory);
  }
  setup.listen = config.server.listen;
  setup.sandbox = config.sandbox;
  setup.tls = !config.server.cert_file.empty();
  return setup;
}

}  // namespace pyrometer
