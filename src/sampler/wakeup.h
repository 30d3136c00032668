// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <chrono>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A wait that other threads can end, even before it begins.
class Wakeup {
 public:
  static Result<Wakeup> Open() {
    UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd) return SystemError(errno, "eventfd");
    return Wakeup(std::move(fd));
  }

  void Wake() const { ::eventfd_write(fd_.get(), 1); }

  // Returns after Wake(), when `other` (if it is a descriptor) is readable, or after `most`;
  // sometimes earlier.
  void Wait(std::chrono::milliseconds most, int other = -1) const {
    pollfd waits[] = {{.fd = fd_.get(), .events = POLLIN, .revents = 0},
                      {.fd = other, .events = POLLIN, .revents = 0}};
    ::poll(waits, std::size(waits), static_cast<int>(most.count()));
    eventfd_t wakes = 0;
    if (waits[0].revents != 0) ::eventfd_read(fd_.get(), &wakes);
  }

 private:
  explicit Wakeup(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace pyrometer
