// SPDX-License-Identifier: Apache-2.0
#include "base/message_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace pyrometer {
namespace {

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(descriptors), end(descriptors)));
}

// As one that wants to harm us may do it.
void SendWith(const MessageSocket& socket, size_t descriptors) {
  std::byte byte{1};
  iovec bytes{&byte, 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(8 * sizeof(int))> room{};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = room.data();
  header.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
  cmsghdr* const control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
  const int fd = STDERR_FILENO;
  for (size_t i = 0; i < descriptors; ++i) {
    std::memcpy(CMSG_DATA(control) + i * sizeof(fd), &fd, sizeof(fd));
  }
  ASSERT_EQ(::sendmsg(socket.fd(), &header, 0), 1);
}

TEST(MessageSocket, TakesOneDescriptorWithAMessage) {
  const auto [one, other] = *MessageSocket::Pair();
  SendWith(other, 1);
  std::byte byte{};
  const Result<UniqueFd> attached = one.Receive(byte);
  ASSERT_TRUE(attached);
  EXPECT_TRUE(*attached);
  EXPECT_EQ(byte, std::byte{1});
}

TEST(MessageSocket, KeepsNoDescriptorThatNobodyAskedFor) {
  const auto [one, other] = *MessageSocket::Pair();
  const size_t before = OpenDescriptors();
  for (const size_t descriptors : {2, 3, 8}) {
    SendWith(other, descriptors);
    std::byte byte{};
    const Result<UniqueFd> attached = one.Receive(byte);
    EXPECT_EQ(attached.error().code(), ErrorCode::kMalformed) << descriptors;
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace pyrometer
