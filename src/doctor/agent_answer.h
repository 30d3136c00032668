// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace pyrometer {

enum class AgentAnswer {
  kNobody,     // no connection
  kSilent,     // a connection, and no answer in time
  kForeign,    // an answer, but none that an agent gives
  kConnected,  // a connection; not asked further, since it would be by TLS
  kHealthy,
  kUnhealthy,
};

struct AgentQuestion {
  std::string address;  // "host:port", "[::1]:port"; of no host: this one
  bool tls = false;
  std::chrono::milliseconds timeout{2000};  // for each of connection, request and answer
};

// Asks whoever listens there for /healthz.
AgentAnswer AskAgent(const AgentQuestion& question);

}  // namespace pyrometer
