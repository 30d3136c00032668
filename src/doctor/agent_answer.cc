// SPDX-License-Identifier: Apache-2.0
#include "doctor/agent_answer.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <memory>
#include <string_view>

#include "base/unique_fd.h"

namespace pyrometer {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {nullptr, ::freeaddrinfo};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found) != 0) {
    return {nullptr, ::freeaddrinfo};
  }
  return {found, ::freeaddrinfo};
}

UniqueFd Connect(const AgentQuestion& question) {
  const auto ms = question.timeout.count();
  const timeval timeout{.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
  const AddressList addresses = Resolve(question.address);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    UniqueFd fd(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (!fd) continue;
    // On Linux the first is also that of connect().
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (::connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return fd;
  }
  return {};
}

// The beginning of the answer: enough for "HTTP/1.1 200".
std::string ReadStatus(int fd) {
  constexpr size_t kEnough = 12;
  std::string answer;
  std::array<char, 256> buffer;
  while (answer.size() < kEnough) {
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) break;
    answer.append(buffer.data(), static_cast<size_t>(n));
  }
  return answer;
}

}  // namespace

AgentAnswer AskAgent(const AgentQuestion& question) {
  const UniqueFd fd = Connect(question);
  if (!fd) return AgentAnswer::kNobody;
  if (question.tls) return AgentAnswer::kConnected;
  // The one name that the agent never takes for that of another site.
  constexpr std::string_view kRequest =
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (::send(fd.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequest.size())) {
    return AgentAnswer::kSilent;
  }
  const std::string answer = ReadStatus(fd.get());
  if (answer.empty()) return AgentAnswer::kSilent;
  const std::string_view status = std::string_view(answer).substr(0, 12);
  if (status == "HTTP/1.1 200" || status == "HTTP/1.0 200") return AgentAnswer::kHealthy;
  if (status == "HTTP/1.1 503" || status == "HTTP/1.0 503") return AgentAnswer::kUnhealthy;
  return AgentAnswer::kForeign;
}

}  // namespace pyrometer
