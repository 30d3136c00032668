// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/environment_reader.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "config/agent_options.h"
#include "metadata/container_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
#include "pyrometer/result.h"

namespace pyrometer {

// How the agent would label the samples of a process that runs now, for people: its labels before
// the rules of relabel_configs, those of its container among them, what each rule does to them, and
// what comes out, or what drops it. Text of several lines. What a filter leaves out, and what is
// only known while an agent runs (where the parent of a process was that has ended, the labels of
// the node), is not in it.
// Waits some seconds at most for what knows the containers. Errors: kInvalid for the configuration;
// kNotFound if there is no such process; kPermission.
Result<std::string> ExplainLabels(const Procfs& procfs, const AgentOptions& options,
                                  const Clock& clock, Pid pid);

// Who is asked; null: nobody.
struct ExplanationSources {
  const Clock& clock;  // for how long
  ContainerDirectory* containers = nullptr;
  EnvironmentReader* environments = nullptr;
  Labels of_node{};  // see CommonLabels()
};

// The same by a configuration that is read.
Result<std::string> ExplainLabels(const Procfs& procfs, const AgentConfig& config,
                                  const ExplanationSources& sources, Pid pid);

}  // namespace pyrometer
