// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>

#include <string>
#include <thread>

namespace pyrometer {

// An HTTP server of a test, from Start() to its end.
class LocalServer {
 public:
  ~LocalServer() {
    server.stop();
    if (thread_.joinable()) thread_.join();
  }

  // After its handlers are set.
  std::string Start() {
    const int port = server.bind_to_any_port("127.0.0.1");
    Listen();
    return "http://127.0.0.1:" + std::to_string(port);
  }

  void StartAt(const std::string& socket) {
    server.set_address_family(AF_UNIX);
    server.bind_to_port(socket, 80);
    Listen();
  }

  httplib::Server server;

 private:
  void Listen() {
    thread_ = std::jthread([this] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::yield();
  }

  std::jthread thread_;
};

}  // namespace pyrometer
