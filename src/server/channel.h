// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "base/unique_fd.h"
#include "server/tls_identity.h"

namespace pyrometer {

// The bytes of one connection, plain or encrypted. Every operation has a moment at which it gives
// up, however much has come or gone by then: a client that sends or takes a byte now and then
// cannot hold a thread. One thread uses it; another may shutdown(2) its socket.
class Channel {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // `socket` is non-blocking. `ssl`: of that socket, before its handshake; null: not encrypted.
  Channel(UniqueFd socket, UniqueSsl ssl) : socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  // Does the TLS handshake, if there is one to do.
  bool Handshake(Deadline deadline);

  // Waits until there is something to read, or the other side has ended.
  bool AwaitInput(Deadline deadline) const;

  // How many bytes came, at most `size`; 0: the other side ended; -1: failed, or too late.
  ptrdiff_t Read(char* out, size_t size, Deadline deadline);

  // Writes all, or fails.
  bool Write(std::string_view bytes, Deadline deadline);

  // Says that nothing more will come.
  void End();

  int socket() const { return socket_.get(); }

 private:
  bool Await(short events, Deadline deadline) const;
  // What an SSL function that returned `result` waits for: true if that came.
  bool AwaitSsl(int result, Deadline deadline) const;

  UniqueFd socket_;
  UniqueSsl ssl_;  // freed before the socket is closed
};

}  // namespace pyrometer
