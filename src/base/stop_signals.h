// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Makes SIGINT and SIGTERM readable from a descriptor. They are blocked in the calling thread and
// in threads started later, so create this first. The destructor restores the old mask.
class StopSignals {
 public:
  static Result<StopSignals> Block();
  StopSignals(StopSignals&& other) noexcept;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();

  // Readable when a signal has come.
  int fd() const { return fd_.get(); }

  // Consumes the signal: fd() is not readable until the next one.
  void Take() const;

 private:
  StopSignals(UniqueFd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  UniqueFd fd_;
  sigset_t before_;
};

}  // namespace pyrometer
