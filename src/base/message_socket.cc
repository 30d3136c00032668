// SPDX-License-Identifier: Apache-2.0
#include "base/message_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

// Room for the control message that carries one descriptor.
struct alignas(cmsghdr) AttachedRoom {
  std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes{};
};

msghdr HeaderOf(iovec& bytes, AttachedRoom& attached) {
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = attached.bytes.data();
  // Without the padding: where that has room for a second one, whoever sends two leaves us that.
  header.msg_controllen = CMSG_LEN(sizeof(int));
  return header;
}

UniqueFd AttachedTo(msghdr& header) {
  const cmsghdr* const control = CMSG_FIRSTHDR(&header);
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(control), sizeof(fd));
  return UniqueFd(fd);
}

}  // namespace

Result<std::pair<MessageSocket, MessageSocket>> MessageSocket::Pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) < 0) {
    return SystemError(errno, "socketpair");
  }
  return std::pair(MessageSocket(UniqueFd(fds[0])), MessageSocket(UniqueFd(fds[1])));
}

void MessageSocket::LimitSending(std::chrono::seconds time) const {
  const timeval limit{.tv_sec = time.count(), .tv_usec = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

Result<void> MessageSocket::SendBytes(std::span<const std::byte> bytes, int attached) const {
  // sendmsg() does not write what it is given.
  iovec buffer{const_cast<std::byte*>(bytes.data()), bytes.size()};  // NOLINT(*-const-cast)
  AttachedRoom room;
  msghdr header = HeaderOf(buffer, room);
  if (attached < 0) {
    header.msg_controllen = 0;
  } else {
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(attached));
    std::memcpy(CMSG_DATA(control), &attached, sizeof(attached));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return SystemError(errno, "sending a message to another process");
  return {};
}

Result<MessageSocket::Received> MessageSocket::ReceiveSome(std::span<std::byte> bytes) const {
  iovec buffer{bytes.data(), bytes.size()};
  AttachedRoom room;
  msghdr header = HeaderOf(buffer, room);
  ssize_t received = 0;
  do {
    received = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return SystemError(errno, "receiving a message from another process");
  UniqueFd attached = AttachedTo(header);
  if (received == 0) return Fail(ErrorCode::kIo, "the other process has closed its end");
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    return Fail(ErrorCode::kMalformed, "a message that is larger than expected");
  }
  return Received{.size = static_cast<size_t>(received), .attached = std::move(attached)};
}

Result<UniqueFd> MessageSocket::ReceiveBytes(std::span<std::byte> bytes) const {
  ASSIGN_OR_RETURN(Received received, ReceiveSome(bytes));
  if (received.size != bytes.size()) {
    return Fail(ErrorCode::kMalformed, "a message of another size than expected");
  }
  return std::move(received.attached);
}

bool MessageSocket::WaitUntilReadable(std::chrono::nanoseconds at_most) const {
  const MonotonicTime until = After(MonotonicNow(), at_most);
  pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  while (true) {
    const auto left = std::max(Between(MonotonicNow(), until), std::chrono::nanoseconds(0));
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left);
    const int ready = ::poll(&wait, 1, static_cast<int>(left_ms.count()));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool MessageSocket::IsClosed() const {
  pollfd look{.fd = fd_.get(), .events = 0, .revents = 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & POLLHUP) != 0;
}

}  // namespace pyrometer
