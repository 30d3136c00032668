// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/channel.h"
#include "server/endpoints.h"
#include "server/open_connections.h"

namespace pyrometer {

struct ConversationLimits {
  std::chrono::milliseconds handshake{std::chrono::seconds(5)};
  std::chrono::milliseconds head{std::chrono::seconds(5)};     // from the start of a request
  std::chrono::milliseconds idle{std::chrono::seconds(30)};    // between two requests
  std::chrono::milliseconds answer{std::chrono::seconds(60)};  // to take all of it
  uint32_t head_bytes = 16 * 1024;                             // request line and headers
  uint32_t requests = 1000;                                    // on one connection
};

// Serves one connection in HTTP/1.1 until it ends: the client or a limit ends it, or
// `connections` does. Requests have no bodies; one that comes with a body is refused and the
// connection closed.
void Converse(Channel& channel, Endpoints& endpoints, OpenConnections& connections,
              const ConversationLimits& limits);

}  // namespace pyrometer
