// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/environment_reader.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "config/agent_config.h"
#include "metadata/container_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Explains the labels of processes (ExplainLabels()) to callers without privileges, on a thread
// that has those of the thread that made it: /proc tells the program and environment of a process
// to nobody else. Thread-safe.
class ProcessExplainer {
 public:
  // The last two may be null; all outlive this.
  ProcessExplainer(Procfs procfs, const Clock& clock, ContainerDirectory* containers,
                   EnvironmentReader* environments);
  ~ProcessExplainer();
  ProcessExplainer(const ProcessExplainer&) = delete;
  ProcessExplainer& operator=(const ProcessExplainer&) = delete;

  // Waits for some seconds at most. Errors: those of ExplainLabels(); kExhausted while another is
  // being explained.
  Result<std::string> Explain(const AgentConfig& config, const Labels& of_node, Pid pid);

 private:
  struct Question {
    const AgentConfig& config;
    const Labels& of_node;
    Pid pid;
    Result<std::string> answer{std::string()};
    bool answered = false;
  };
  void Run();

  const Procfs procfs_;
  const Clock& clock_;
  ContainerDirectory* const containers_;
  EnvironmentReader* const environments_;
  absl::Mutex mutex_;
  Question* question_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pyrometer
