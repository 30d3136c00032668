// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/agent_metrics.h"
#include "agent/destinations.h"
#include "agent/environment_reader.h"
#include "agent/guest.h"
#include "agent/process_explainer.h"
#include "agent/process_labels.h"
#include "agent/recent_windows.h"
#include "agent/window_shipper.h"
#include "config/agent_config.h"
#include "metadata/container_directory.h"
#include "profiler/profiler.h"
#include "server/agent_view.h"

namespace pyrometer {

// What the agent tells its server, put together from its parts. Thread-safe.
class LocalView final : public AgentView {
 public:
  // All outlive this.
  struct Parts {
    Profiler& profiler;
    const WindowShipper& shipper;
    const RecentWindows& recent;
    const Destinations& destinations;
    const Guest& guest;
    ProcessLabels& labels;
    const ContainerDirectory* containers;   // null: none
    const EnvironmentReader* environments;  // null: none
    ProcessExplainer& explainer;
    const Clock& clock;
  };
  // What the agent's main thread knows, and changes at a reload.
  struct Facts {
    AgentConfig config;
    Labels labels;   // of every profile
    Labels of_node;  // those of them that are labels of the node
    std::vector<std::string> missing_cgroups;
    std::string reload_error;  // of the last reload; "": it took effect
    uint64_t reloads = 0;
    uint64_t failed_reloads = 0;
    std::string server_error;  // why the server is not as configured; "": it is
  };

  LocalView(const Parts& parts, Facts facts);

  void SetFacts(Facts facts);
  // What the engine has counted. The server's threads do not ask it: they have no capabilities, and
  // before Linux 5.19 (kernel.unprivileged_bpf_disabled) reading a map takes CAP_BPF.
  void SetEngine(const ProfilerStats& engine);

  std::vector<Metric> Metrics() override;
  AgentStatus Status() override;
  std::vector<std::string> WhyNotHealthy() override;
  std::vector<std::string> WhyNotReady() override;
  Result<std::string> FlameGraph(const ProfileQuery& query) override;
  Result<std::string> Explain(Pid pid, const std::stop_token& stop) override;
  Result<std::string> CollectProfile(const ProfileQuery& query,
                                     const std::stop_token& stop) override;

 private:
  Facts facts() const;
  ProfilerStats engine() const;
  SamplingStatus Sampling(const Facts& facts) const;

  const Parts parts_;
  const std::chrono::system_clock::time_point since_;
  const MonotonicTime began_;
  mutable absl::Mutex mutex_;
  Facts facts_ ABSL_GUARDED_BY(mutex_);
  ProfilerStats engine_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
