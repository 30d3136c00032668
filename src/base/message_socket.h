// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Whole messages between two processes, each with a descriptor or without.
class MessageSocket {
 public:
  MessageSocket() = default;
  explicit MessageSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  // Two ends that are connected.
  static Result<std::pair<MessageSocket, MessageSocket>> Pair();

  int fd() const { return fd_.get(); }

  // Sending fails from now on if the other end does not receive what came before within that time.
  void LimitSending(std::chrono::seconds time) const;

  // `attached` may be -1. Errors: kIo, also if the other end is closed.
  Result<void> SendBytes(std::span<const std::byte> bytes, int attached) const;
  // Waits for a message of just this size. Errors: kMalformed for another size; kIo, also if the
  // other end is closed.
  Result<UniqueFd> ReceiveBytes(std::span<std::byte> bytes) const;
  // A message of any size: its first bytes, as far as there is room.
  struct Received {
    size_t size = 0;  // of bytes; 0 of a message without any
    UniqueFd attached;
  };
  // Waits for one. Errors: kMalformed if it is larger than `room`; kIo as above.
  Result<Received> ReceiveSome(std::span<std::byte> room) const;
  // True if there is a message, or the other end is closed, within that time.
  bool WaitUntilReadable(std::chrono::nanoseconds at_most) const;

  // True if nobody has the other end any more, whatever is left to be received. A process that ends
  // has given its memory back by then.
  bool IsClosed() const;

  template <typename T>
  Result<void> Send(const T& message, int attached = -1) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return SendBytes(std::as_bytes(std::span(&message, 1)), attached);
  }
  // Returns the descriptor that came with it, invalid if there is none.
  template <typename T>
  Result<UniqueFd> Receive(T& message) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return ReceiveBytes(std::as_writable_bytes(std::span(&message, 1)));
  }

 private:
  UniqueFd fd_;
};

}  // namespace pyrometer
