// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct ListenAddress {
  std::string host;   // a name or an IP address without brackets; "": every address
  uint16_t port = 0;  // 0: the kernel chooses
};

// Reads "127.0.0.1:4041", "[::]:4041", "localhost:0" or ":4041". Errors: kInvalid.
Result<ListenAddress> ParseListenAddress(std::string_view text);

// A listening TCP socket, non-blocking; "[::]" takes IPv4 as well. Errors: kInvalid if the host
// has no address, kPermission, kExhausted or kIo if it cannot be bound, with the address.
Result<UniqueFd> Listen(const ListenAddress& address);

// The near end of a socket.
struct LocalAddress {
  std::string text;  // as in ParseListenAddress
  uint16_t port = 0;
  bool loopback = false;
};
LocalAddress LocalAddressOf(int socket);

}  // namespace pyrometer
