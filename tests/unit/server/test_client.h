// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace pyrometer {

struct Answer {
  int status = 0;  // 0: the connection ended before there was one
  std::multimap<std::string, std::string> headers;
  std::string body;

  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// A client that writes bytes as the test has them, and reads answers with a Content-Length. Gives
// up after a minute.
class TestClient {
 public:
  explicit TestClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(put));
    }
    return true;
  }

  // `headers`: whole lines.
  void Ask(const std::string& target, const std::string& headers = "",
           const std::string& method = "GET") {
    Send(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }

  Answer Receive(bool with_body = true) {
    Answer answer;
    size_t end = 0;
    while ((end = unread_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return answer;
    }
    ParseHead(unread_.substr(0, end + 2), answer);
    unread_.erase(0, end + 4);
    const size_t size = std::strtoul(answer.Header("Content-Length").c_str(), nullptr, 10);
    while (with_body && unread_.size() < size) {
      if (!Fill()) return {};
    }
    if (with_body) answer.body = std::exchange(unread_, unread_.substr(size)).substr(0, size);
    return answer;
  }

  Answer Get(const std::string& target, const std::string& headers = "") {
    Ask(target, headers);
    return Receive();
  }

  // Whether there is something to receive, the end included, or will be within `time`.
  bool HasNews(std::chrono::milliseconds time) const {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return poll(&ready, 1, static_cast<int>(time.count())) > 0;
  }

  // Whether the server ended the connection, and nothing else came.
  bool Ended() { return unread_.empty() && !Fill() && ended_; }

  int socket() const { return socket_.get(); }

 private:
  bool Fill() {
    std::array<char, 4096> bytes{};
    const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    ended_ = got == 0 || (got < 0 && errno == ECONNRESET);
    if (got > 0) unread_.append(bytes.data(), static_cast<size_t>(got));
    return got > 0;
  }

  static void ParseHead(std::string_view head, Answer& answer) {
    answer.status = std::atoi(std::string(head.substr(head.find(' ') + 1, 3)).c_str());
    head.remove_prefix(head.find("\r\n") + 2);
    while (!head.empty()) {
      const size_t end = head.find("\r\n");
      const std::string_view line = head.substr(0, end);
      const size_t colon = line.find(": ");
      answer.headers.emplace(line.substr(0, colon), line.substr(colon + 2));
      head.remove_prefix(end + 2);
    }
  }

  UniqueFd socket_;
  std::string unread_;
  bool ended_ = false;
};

}  // namespace pyrometer
