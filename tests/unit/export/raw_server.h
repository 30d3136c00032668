// SPDX-License-Identifier: Apache-2.0
// A server that says byte for byte what a test wants it to say.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "tests/shared/eventually.h"

namespace pyrometer {

// A port of this host that nobody else gets, and on which nobody listens but a server of the test
// that shares it (SO_REUSEPORT, which is how gRPC's servers bind).
class ReservedPort {
 public:
  ReservedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    EXPECT_EQ(::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    socklen_t size = sizeof(address);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    number_ = ntohs(address.sin_port);
  }

  uint16_t number() const { return number_; }
  std::string Address() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  UniqueFd fd_;
  uint16_t number_ = 0;
};

// How many connections to `port` of this host this process has.
inline size_t ConnectionsTo(int port) {
  constexpr int kMostDescriptors = 1024;
  size_t connections = 0;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    const in_port_t of_peer = peer.ss_family == AF_INET6
                                  ? reinterpret_cast<const sockaddr_in6&>(peer).sin6_port
                                  : reinterpret_cast<const sockaddr_in&>(peer).sin_port;
    if (peer.ss_family != AF_UNIX && ntohs(of_peer) == port) ++connections;
  }
  return connections;
}

// Serves one connection after the other: reads requests and answers each with the same bytes.
class RawServer {
 public:
  struct Options {
    std::string answer;             // "": none
    bool reads = true;              // the requests, before it answers
    bool closes = true;             // the connection after an answer, or after no answer
    size_t answers_at_most = 1000;  // then it closes without
    bool goes = false;              // then, and nobody listens any more
    // If it neither reads nor closes: closes once so many bytes came; 0: reads none of them.
    size_t holds_until_bytes = 0;
  };

  explicit RawServer(Options options) : options_(std::move(options)) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    socklen_t size = sizeof(address);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~RawServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
      if (connection_ >= 0) ::shutdown(connection_, SHUT_RDWR);
    }
    thread_.join();
  }

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }

  std::vector<std::string> Requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  size_t Connections() const { return connections_; }

  // Fails the test if `count` requests do not come.
  void WaitForRequests(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kTestPatience, [&] { return requests_.size() >= count; }));
  }

 private:
  void Serve() {
    while (!stopping_) {
      const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) return;
      ++connections_;
      SetConnection(connection.get());
      Converse(connection.get());
      SetConnection(-1);
    }
  }

  void SetConnection(int fd) {
    const std::lock_guard lock(mutex_);
    connection_ = fd;
    if (stopping_ && fd >= 0) ::shutdown(fd, SHUT_RDWR);
  }

  void Converse(int fd) {
    if (!options_.reads) {
      if (Send(fd) && !options_.closes) Hold(fd);
      return;
    }
    std::string received;
    while (ReadRequest(fd, received)) {
      if (answered_ >= options_.answers_at_most) {
        if (options_.goes) ::shutdown(listener_.get(), SHUT_RDWR);
        return;
      }
      ++answered_;
      if (!Send(fd) || options_.closes) return;
    }
  }

  bool Send(int fd) const {
    std::string_view rest = options_.answer;
    while (!rest.empty()) {
      const ssize_t sent = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      rest.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Until the test ends, or enough bytes came.
  void Hold(int fd) {
    std::array<char, 65536> buffer{};
    size_t total = 0;
    while (total < options_.holds_until_bytes) {
      const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) return;
      total += static_cast<size_t>(got);
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || options_.holds_until_bytes > 0; });
  }

  // One request with its body; false at the end of the connection.
  bool ReadRequest(int fd, std::string& received) {
    std::array<char, 65536> buffer{};
    while (true) {
      const size_t end = received.find("\r\n\r\n");
      if (end != std::string::npos) {
        const size_t at = received.find("Content-Length: ");
        const size_t body = at < end ? std::strtoul(received.c_str() + at + 16, nullptr, 10) : 0;
        if (received.size() >= end + 4 + body) {
          const std::lock_guard lock(mutex_);
          requests_.push_back(received.substr(0, end + 4 + body));
          received.erase(0, end + 4 + body);
          changed_.notify_all();
          return true;
        }
      }
      const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) return false;
      received.append(buffer.data(), static_cast<size_t>(got));
    }
  }

  const Options options_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<size_t> connections_ = 0;
  size_t answered_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int connection_ = -1;
  std::vector<std::string> requests_;
  std::thread thread_;
};

// "HTTP/1.1 429 X", with its headers ("Retry-After: 7\r\n") and body.
inline std::string HttpText(int status, const std::string& headers = "",
                            const std::string& body = "") {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace pyrometer
