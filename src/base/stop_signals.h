// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Turns SIGINT and SIGTERM into something to wait for. They are blocked in the calling thread and
// in threads started later, so make it first thing; the old mask comes back with its end.
class StopSignals {
 public:
  static Result<StopSignals> Block();
  StopSignals(StopSignals&& other) noexcept;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();

  // Readable when a signal has come.
  int fd() const { return fd_.get(); }

  // Makes it unreadable again, until the next signal.
  void Take() const;

 private:
  StopSignals(UniqueFd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  UniqueFd fd_;
  sigset_t before_;
};

}  // namespace pyrometer
