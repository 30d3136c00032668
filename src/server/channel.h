// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "server/tls_identity.h"

namespace pyrometer {

// The bytes of one connection, plain or encrypted. Every operation has a moment at which it gives
// up, however much has come or gone by then: a client that sends or takes a byte now and then
// cannot hold a thread. One thread uses it; another may shutdown(2) its socket.
class Channel {
 public:
  // `socket` is non-blocking. `ssl`: of that socket, before its handshake; null: not encrypted.
  // `clock` tells when a deadline has come; it must outlive the channel.
  Channel(UniqueFd socket, UniqueSsl ssl, const Clock& clock)
      : clock_(clock), socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  // The deadline that comes in `time` from now, and whether one has come.
  MonotonicTime In(std::chrono::nanoseconds time) const { return After(clock_.Now(), time); }
  bool IsPast(MonotonicTime deadline) const { return clock_.Now() >= deadline; }

  // Does the TLS handshake, if there is one to do.
  bool Handshake(MonotonicTime deadline);

  // Waits until there is something to read, or the other side has ended.
  bool AwaitInput(MonotonicTime deadline) const;

  // How many bytes came, at most `size`; 0: the other side ended; -1: failed, or too late.
  ptrdiff_t Read(char* out, size_t size, MonotonicTime deadline);

  // Writes all, or fails. What the kernel takes at once is written however late it is.
  bool Write(std::string_view bytes, MonotonicTime deadline);

  // Says that nothing more will come.
  void End();

  int socket() const { return socket_.get(); }

 private:
  bool Await(short events, MonotonicTime deadline) const;
  // What an SSL function that returned `result` waits for: true if that came.
  bool AwaitSsl(int result, MonotonicTime deadline) const;

  const Clock& clock_;
  UniqueFd socket_;
  UniqueSsl ssl_;  // freed before the socket is closed
};

}  // namespace pyrometer
