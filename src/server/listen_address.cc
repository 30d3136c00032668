// SPDX-License-Identifier: Apache-2.0
#include "server/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr int kBacklog = 64;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> Resolve(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host.empty() ? "::" : address.host.c_str(),
                                std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return Fail(ErrorCode::kInvalid, "{}: {}", address.host, gai_strerror(error));
  }
  return AddressList(found, &freeaddrinfo);
}

Result<UniqueFd> ListenOn(const addrinfo& place) {
  UniqueFd socket(::socket(place.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return SystemError(errno, "socket");
  const int on = 1;
  const int off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (place.ai_family == AF_INET6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(socket.get(), place.ai_addr, place.ai_addrlen) != 0) return SystemError(errno, "bind");
  if (listen(socket.get(), kBacklog) != 0) return SystemError(errno, "listen");
  return socket;
}

bool IsLoopback(const sockaddr_storage& address) {
  constexpr uint8_t kLoopbackNet = 127;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == kLoopbackNet;
  }
  if (address.ss_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == kLoopbackNet);
}

}  // namespace

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorCode::kInvalid,
                "{}: not an address to listen on; write HOST:PORT, such as 127.0.0.1:4041 or "
                "[::]:4041",
                text);
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  ListenAddress address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} || end != port.data() + port.size()) return bad();
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.empty()) return bad();
  } else if (host.find(':') != std::string_view::npos) {
    return bad();
  }
  address.host = host;
  return address;
}

Result<UniqueFd> Listen(const ListenAddress& address) {
  ListenAddress wanted = address;
  Result<AddressList> places = Resolve(wanted);
  Result<UniqueFd> socket = Fail(ErrorCode::kIo, "no address");
  if (places) socket = ListenOn(**places);
  if (!socket && address.host.empty()) {  // a kernel without IPv6
    wanted.host = "0.0.0.0";
    places = Resolve(wanted);
    if (places) socket = ListenOn(**places);
  }
  if (!places) return std::move(places).error().With("the server's address");
  if (socket) return socket;
  return std::move(socket).error().With(
      fmt::format("listening on {}:{}", address.host, address.port));
}

LocalAddress LocalAddressOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  LocalAddress local;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return local;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(),
                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return local;
  }
  const bool v6 = address.ss_family == AF_INET6;
  local.text = v6 ? fmt::format("[{}]:{}", host.data(), port.data())
                  : fmt::format("{}:{}", host.data(), port.data());
  local.port = ntohs(v6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                        : reinterpret_cast<sockaddr_in&>(address).sin_port);
  local.loopback = IsLoopback(address);
  return local;
}

}  // namespace pyrometer
