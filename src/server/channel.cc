// SPDX-License-Identifier: Apache-2.0
#include "server/channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

bool WouldBlock(int error) {
  return error == EAGAIN || error == EINTR;
}

int SslSize(size_t size) {
  return static_cast<int>(std::min<size_t>(size, INT_MAX));
}

}  // namespace

bool Channel::Handshake(MonotonicTime deadline) {
  if (!ssl_) return true;
  while (true) {
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return true;
    if (!AwaitSsl(result, deadline)) return false;
  }
}

bool Channel::AwaitInput(MonotonicTime deadline) const {
  return (ssl_ && SSL_has_pending(ssl_.get()) == 1) || Await(POLLIN, deadline);
}

ptrdiff_t Channel::Read(char* out, size_t size, MonotonicTime deadline) {
  while (true) {
    if (ssl_) {
      const int got = SSL_read(ssl_.get(), out, SslSize(size));
      if (got > 0) return got;
      if (SSL_get_error(ssl_.get(), got) == SSL_ERROR_ZERO_RETURN) return 0;
      if (!AwaitSsl(got, deadline)) return -1;
      continue;
    }
    const ptrdiff_t got = recv(socket_.get(), out, size, 0);
    if (got >= 0) return got;
    if (!WouldBlock(errno) || !Await(POLLIN, deadline)) return -1;
  }
}

bool Channel::Write(std::string_view bytes, MonotonicTime deadline) {
  while (!bytes.empty()) {
    if (ssl_) {
      const int put = SSL_write(ssl_.get(), bytes.data(), SslSize(bytes.size()));
      if (put > 0) {
        bytes.remove_prefix(static_cast<size_t>(put));
      } else if (!AwaitSsl(put, deadline)) {
        return false;
      }
    } else {
      const ptrdiff_t put = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put > 0) {
        bytes.remove_prefix(static_cast<size_t>(put));
      } else if (!WouldBlock(errno) || !Await(POLLOUT, deadline)) {
        return false;
      }
    }
    // However little it takes at a time.
    if (!bytes.empty() && IsPast(deadline)) return false;
  }
  return true;
}

void Channel::End() {
  // After a failure SSL_shutdown is an error that OpenSSL would keep for this thread's next user.
  if (ssl_ && SSL_is_init_finished(ssl_.get()) == 1) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  shutdown(socket_.get(), SHUT_WR);
}

// Sleeps for as long as the clock says is left, and then asks the clock again: a test's may stand
// still meanwhile, or jump.
bool Channel::Await(short events, MonotonicTime deadline) const {
  pollfd ready{.fd = socket_.get(), .events = events, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(Between(clock_.Now(), deadline)).count();
    if (left <= 0) return false;
    const int count = poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, INT_MAX)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

bool Channel::AwaitSsl(int result, MonotonicTime deadline) const {
  const int why = SSL_get_error(ssl_.get(), result);
  if (why == SSL_ERROR_WANT_READ) return Await(POLLIN, deadline);
  if (why == SSL_ERROR_WANT_WRITE) return Await(POLLOUT, deadline);
  ERR_clear_error();
  return false;
}

}  // namespace pyrometer
