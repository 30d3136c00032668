// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <optional>

#include "base/unique_fd.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Makes SIGINT and SIGTERM, and SIGHUP if wanted, readable from a descriptor. They are blocked in
// the calling thread and in threads started later, so create this first. The destructor restores
// the old mask.
class StopSignals {
 public:
  enum class Also { kNothing, kHangup };
  static Result<StopSignals> Block(Also also = Also::kNothing);
  StopSignals(StopSignals&& other) noexcept;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();

  // Readable when a signal has come.
  int fd() const { return fd_.get(); }

  // Consumes all signals that have come: fd() is not readable until the next one.
  void Take() const;

  // Consumes one of them and returns its number; nothing if none is left.
  std::optional<int> Next() const;

 private:
  StopSignals(UniqueFd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  UniqueFd fd_;
  sigset_t before_;
};

}  // namespace pyrometer
