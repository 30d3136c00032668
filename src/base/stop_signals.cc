// SPDX-License-Identifier: Apache-2.0
#include "base/stop_signals.h"

#include <sys/signalfd.h>

#include <cerrno>

#include "base/system_error.h"

namespace pyrometer {

Result<StopSignals> StopSignals::Block(Also also) {
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  if (also == Also::kHangup) sigaddset(&stop, SIGHUP);
  if (const int error = pthread_sigmask(SIG_BLOCK, &stop, &before); error != 0) {
    return SystemError(error, "blocking signals");
  }
  UniqueFd fd(signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return SystemError(errno, "signalfd");
  return StopSignals(std::move(fd), before);
}

StopSignals::StopSignals(StopSignals&& other) noexcept = default;

StopSignals::~StopSignals() {
  if (!fd_) return;
  // A signal that came and was acted on must not strike again when it is unblocked.
  Take();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::Take() const {
  while (Next()) {
  }
}

std::optional<int> StopSignals::Next() const {
  signalfd_siginfo info;
  if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace pyrometer
