// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "pyrometer/result.h"
#include "server/agent_status.h"
#include "server/metric.h"
#include "server/profile_query.h"

namespace pyrometer {

// What the server asks of the agent. Thread-safe: up to 16 threads call it at once, and while the
// HttpServer lives.
class AgentView {
 public:
  virtual ~AgentView() = default;

  // These five answer at once, from what is known.
  virtual std::vector<Metric> Metrics() = 0;
  virtual AgentStatus Status() = 0;
  // Why the process is of no use any more and should be restarted; empty: it is alive.
  virtual std::vector<std::string> WhyNotHealthy() = 0;
  // Why it does not deliver what it is for: not sampling, no window finished yet.
  virtual std::vector<std::string> WhyNotReady() = 0;
  // `record`'s page with the flame graph of the last windows that cover `query.duration`, or of all
  // there are, with the samples that match `query`. Errors: any; the client reads the message.
  virtual Result<std::string> FlameGraph(const ProfileQuery& query) = 0;

  // Why the samples of a process have their labels, in lines of text: what is known of it, and what
  // each rule does. Waits some seconds at most, and returns soon after `stop` is requested, with
  // anything. Errors: kNotFound if there is no such process; kExhausted if too many ask; any other;
  // the client reads the message.
  virtual Result<std::string> Explain(Pid pid, const std::stop_token& stop) = 0;

  // A profile of the next `query.duration`, which need not be aligned to the agent's windows:
  // gzip-compressed pprof, with the samples that match `query`, its time and its duration. Several
  // run at once, each with a period of its own. Returns soon after `stop` is requested, with
  // anything: nobody reads it. Errors: any; the client reads the message.
  virtual Result<std::string> CollectProfile(const ProfileQuery& query,
                                             const std::stop_token& stop) = 0;
};

}  // namespace pyrometer
