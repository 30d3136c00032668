// SPDX-License-Identifier: Apache-2.0
#include "doctor/agent_answer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/unique_fd.h"

namespace pyrometer {
namespace {

// Listens at a port of the loopback; what comes in waits until it is accepted.
class Listener {
 public:
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_.get(), any, size), 0);
    EXPECT_EQ(::listen(fd_.get(), 4), 0);
    EXPECT_EQ(::getsockname(fd_.get(), any, &size), 0);
    port_ = ::ntohs(address.sin_port);
  }

  // Of one client: its request, after it has got `answer`.
  std::string Answer(std::string_view answer) {
    const UniqueFd client(::accept(fd_.get(), nullptr, nullptr));
    std::array<char, 1024> request;
    const ssize_t n = ::recv(client.get(), request.data(), request.size(), 0);
    EXPECT_TRUE(WriteAll(client.get(), answer).has_value());
    return std::string(request.data(), n > 0 ? static_cast<size_t>(n) : 0);
  }

  void Close() { fd_.Reset(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  UniqueFd fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  uint16_t port_ = 0;
};

AgentAnswer AskWhoSays(std::string_view words) {
  Listener listener;
  std::string request;
  std::jthread server([&] { request = listener.Answer(words); });
  const AgentAnswer answer = AskAgent({.address = listener.address()});
  server.join();
  EXPECT_TRUE(request.starts_with("GET /healthz HTTP/1.1\r\n")) << request;
  return answer;
}

TEST(AskAgent, TellsAHealthyAgentFromOneThatIsNot) {
  EXPECT_EQ(AskWhoSays("HTTP/1.1 200 OK\r\n\r\nok\n"), AgentAnswer::kHealthy);
  EXPECT_EQ(AskWhoSays("HTTP/1.1 503 Service Unavailable\r\n\r\n"), AgentAnswer::kUnhealthy);
}

TEST(AskAgent, TellsOtherProgramsFromAgents) {
  EXPECT_EQ(AskWhoSays("HTTP/1.1 404 Not Found\r\n\r\n"), AgentAnswer::kForeign);
  EXPECT_EQ(AskWhoSays("220 mail.example.com ESMTP\r\n"), AgentAnswer::kForeign);
  EXPECT_EQ(AskWhoSays("SSH"), AgentAnswer::kForeign);
  EXPECT_EQ(AskWhoSays(""), AgentAnswer::kSilent);
}

TEST(AskAgent, WaitsOnlySoLongForAnAnswer) {
  const Listener listener;
  EXPECT_EQ(AskAgent({.address = listener.address(), .timeout = std::chrono::milliseconds(10)}),
            AgentAnswer::kSilent);
}

TEST(AskAgent, OnlyConnectsToWhoSpeaksTls) {
  const Listener listener;
  EXPECT_EQ(AskAgent({.address = listener.address(), .tls = true}), AgentAnswer::kConnected);
}

TEST(AskAgent, FindsNobodyWhereNobodyListens) {
  Listener listener;
  listener.Close();
  EXPECT_EQ(AskAgent({.address = listener.address()}), AgentAnswer::kNobody);
  EXPECT_EQ(AskAgent({.address = "no port"}), AgentAnswer::kNobody);
  EXPECT_EQ(AskAgent({.address = ""}), AgentAnswer::kNobody);
}

}  // namespace
}  // namespace pyrometer
