// SPDX-License-Identifier: Apache-2.0
#include "process/kernel_events.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/cpu_list.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr std::chrono::milliseconds kWithoutBell(20);

Result<void> Watch(const UniqueFd& epoll, int fd) {
  epoll_event interest{};
  interest.events = EPOLLIN | EPOLLET;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &interest) < 0) {
    return SystemError(errno, "epoll_ctl");
  }
  return {};
}

// False if nothing came. Which one it was does not matter: Read() reads them all.
bool WaitAt(const UniqueFd& epoll, std::chrono::milliseconds timeout) {
  std::array<epoll_event, 16> ready;
  return ::epoll_wait(epoll.get(), ready.data(), static_cast<int>(ready.size()),
                      static_cast<int>(timeout.count())) > 0;
}

}  // namespace

KernelEvents::KernelEvents(Options options, UniqueFd epoll, UniqueFd any)
    : options_(std::move(options)), epoll_(std::move(epoll)), any_(std::move(any)) {}

Result<KernelEvents> KernelEvents::Open(Options options) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd any(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll || !any) return SystemError(errno, "epoll_create1");
  KernelEvents events(std::move(options), std::move(epoll), std::move(any));
  if (const int fd = events.options_.wake_fd; fd >= 0) {
    RETURN_IF_ERROR(Watch(events.epoll_, fd));
    RETURN_IF_ERROR(Watch(events.any_, fd));
  }
  ASSIGN_OR_RETURN(const bool opened, events.Rescan());
  if (!opened) return Fail(ErrorCode::kUnsupported, "no cpu is online");
  return events;
}

Result<bool> KernelEvents::Rescan() {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> online, OnlineCpus(options_.procfs));
  const auto gone = std::stable_partition(cpus_.begin(), cpus_.end(), [&](Cpu& cpu) {
    return std::ranges::find(online, cpu.ring.cpu()) != online.end() && !cpu.ring.HasStopped();
  });
  for (auto cpu = gone; cpu != cpus_.end(); ++cpu) {
    malformed_ += cpu->ring.Drain(merger_, options_.clock).malformed;
  }
  cpus_.erase(gone, cpus_.end());
  bool came = false;
  for (const unsigned number : online) {
    const bool known =
        std::ranges::any_of(cpus_, [&](const Cpu& cpu) { return cpu.ring.cpu() == number; });
    if (known) continue;
    const Result<void> added = AddCpu(number);
    if (!added && added.error().code() == ErrorCode::kNotFound) continue;  // went at once
    RETURN_IF_ERROR(added);
    came = true;
  }
  return came;
}

Result<void> KernelEvents::AddCpu(unsigned number) {
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Open(number, options_.ring));
  RETURN_IF_ERROR(Watch(epoll_, ring.fd()));
  std::optional<PerfRing> bell;
  Result<PerfRing> opened =
      PerfRing::Open(number, {.ring_bytes = 0, .wakeup_bytes = 1, .min_bytes = 0});
  if (opened && Watch(any_, opened->fd())) bell = *std::move(opened);
  cpus_.push_back({.ring = std::move(ring), .bell = std::move(bell)});
  return {};
}

KernelEvents::Batch KernelEvents::Read() {
  Batch batch;
  batch.horizon = options_.clock.Now();  // before the first ring is read
  for (Cpu& cpu : cpus_) malformed_ += cpu.ring.Drain(merger_, options_.clock).malformed;
  batch.events = merger_.Release(batch.horizon);
  batch.malformed = std::exchange(malformed_, 0);
  batch.more = merger_.has_pending();
  return batch;
}

void KernelEvents::Wait(std::chrono::milliseconds timeout) const {
  WaitAt(epoll_, timeout);
}

bool KernelEvents::WaitForAny(std::chrono::milliseconds timeout) {
  for (Cpu& cpu : cpus_) {
    if (cpu.bell) {
      cpu.bell->Discard();
    } else {
      timeout = std::min(timeout, kWithoutBell);
    }
  }
  // Only now: a record that comes from here on rings.
  return HasUnread() || WaitAt(any_, timeout);
}

bool KernelEvents::HasUnread() const {
  return std::ranges::any_of(cpus_, [](const Cpu& cpu) { return cpu.ring.HasUnread(); });
}

}  // namespace pyrometer
