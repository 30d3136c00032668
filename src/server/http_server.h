// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "pyrometer/result.h"
#include "server/agent_view.h"
#include "server/conversation.h"
#include "server/endpoints.h"
#include "server/listen_address.h"
#include "server/open_connections.h"
#include "server/tls_identity.h"
#include "server/workers.h"

namespace pyrometer {

struct HttpServerOptions {
  const Clock& clock;                     // of the limits; must outlive the server
  std::string listen = "127.0.0.1:4041";  // see ParseListenAddress
  std::string cert_file{};                // both or neither
  std::string key_file{};
  std::string bearer_token_file{};  // "": nobody needs a token
  uint32_t max_profiles = 8;        // collected at once
  uint32_t threads = 16;            // REQUIRES: more than max_profiles
  ConversationLimits limits{};
};

// The agent's own web server: metrics, health, profiles and the page; README.md lists the
// paths.
// A thread of its own accepts connections and watches the clients that wait for a profile; others,
// as many as are needed and no more than `threads`, serve a connection each. SIGPIPE is ignored in
// the whole process from the first connection on.
class HttpServer {
 public:
  // Listens from its return on. REQUIRES: `agent` outlives it. Errors: those of ParseListenAddress,
  // Listen and TlsIdentity::Load; kInvalid if the token's file has none.
  static Result<std::unique_ptr<HttpServer>> Start(AgentView& agent, HttpServerOptions options);

  // Ends every connection and every profile under way; takes as long as AgentView's slowest answer.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Where it listens, with the port that the kernel chose.
  const std::string& address() const { return address_.text; }
  uint16_t port() const { return address_.port; }

  // What is wrong with it, in words for an operator: a certificate or a token that cannot be read.
  std::vector<std::string> Troubles() const;

 private:
  HttpServer(AgentView& agent, HttpServerOptions options, UniqueFd listener,
             std::unique_ptr<TlsIdentity> tls);

  void Accept(const std::stop_token& stop);
  void AcceptOne(const std::stop_token& stop);
  void Serve(UniqueFd socket);

  const HttpServerOptions options_;
  const UniqueFd listener_;
  const LocalAddress address_;
  const std::unique_ptr<TlsIdentity> tls_;  // null: not encrypted
  OpenConnections connections_;
  Endpoints endpoints_;
  Workers workers_;
  std::jthread acceptor_;
};

}  // namespace pyrometer
