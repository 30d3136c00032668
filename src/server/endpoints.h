// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/access.h"
#include "server/agent_view.h"

namespace pyrometer {

// A request, as far as any endpoint wants it. The strings live as long as the call.
struct Call {
  std::string_view method;
  std::string_view path;
  QueryParameters parameters;
  std::string_view host;           // the header; "": none
  std::string_view authorization;  // the header; "": none
  bool loopback = false;           // it came to an address of the loopback interface
  // What stops when the client goes away; asking for it is not free.
  std::function<std::stop_token()> client_gone;
};

struct Reply {
  int status = 200;
  std::string body{};
  std::string type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers{};
};

// Every path of the server. Thread-safe.
class Endpoints {
 public:
  struct Options {
    std::string bearer_token_file;
    uint32_t max_profiles = 8;  // collected at once
    // What is wrong with the server itself, for the page's warnings.
    std::function<std::vector<std::string>()> troubles;
  };

  Endpoints(AgentView& agent, Options options);

  // Never throws, if the agent does not. Takes as long as the profile that was asked for.
  Reply Answer(const Call& call);

 private:
  Reply AnswerAdmitted(const Call& call);
  Reply Health(const std::vector<std::string>& reasons) const;
  Reply Metrics();
  Reply Page();
  AgentStatus Status();
  Reply FlameGraph(const Call& call);
  Reply Explain(const Call& call);
  Reply Profile(const Call& call);

  AgentView& agent_;
  const Options options_;
  const Access access_;
  std::atomic<uint32_t> profiles_{0};      // being collected
  std::atomic<uint32_t> flame_graphs_{0};  // being made
};

}  // namespace pyrometer
