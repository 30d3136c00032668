// SPDX-License-Identifier: Apache-2.0
#include "process/kernel_events.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/cpu_list.h"
#include "base/system_error.h"

namespace pyrometer {

KernelEvents::KernelEvents(Options options, UniqueFd epoll)
    : options_(std::move(options)), epoll_(std::move(epoll)) {}

Result<KernelEvents> KernelEvents::Open(Options options) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return SystemError(errno, "epoll_create1");
  KernelEvents events(std::move(options), std::move(epoll));
  if (events.options_.wake_fd >= 0) RETURN_IF_ERROR(events.Watch(events.options_.wake_fd));
  ASSIGN_OR_RETURN(const bool opened, events.Rescan());
  if (!opened) return Fail(ErrorCode::kUnsupported, "no cpu is online");
  return events;
}

Result<bool> KernelEvents::Rescan() {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> online, OnlineCpus(options_.procfs));
  for (PerfRing& ring : rings_) {
    const bool gone = std::find(online.begin(), online.end(), ring.cpu()) == online.end();
    if (gone) malformed_ += ring.Drain(merger_).malformed;
  }
  std::erase_if(rings_, [&](const PerfRing& ring) {
    return std::find(online.begin(), online.end(), ring.cpu()) == online.end();
  });
  bool came = false;
  for (const unsigned cpu : online) {
    const bool known = std::any_of(rings_.begin(), rings_.end(),
                                   [&](const PerfRing& ring) { return ring.cpu() == cpu; });
    if (known) continue;
    const Result<void> added = AddRing(cpu);
    if (!added && added.error().code() == ErrorCode::kNotFound) continue;  // went at once
    RETURN_IF_ERROR(added);
    came = true;
  }
  return came;
}

Result<void> KernelEvents::AddRing(unsigned cpu) {
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Open(cpu, options_.ring));
  RETURN_IF_ERROR(Watch(ring.fd()));
  rings_.push_back(std::move(ring));
  return {};
}

Result<void> KernelEvents::Watch(int fd) const {
  epoll_event interest{};
  interest.events = EPOLLIN | EPOLLET;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &interest) < 0) {
    return SystemError(errno, "epoll_ctl");
  }
  return {};
}

KernelEvents::Batch KernelEvents::Read() {
  Batch batch;
  batch.horizon = MonotonicNow();  // before the first ring is read
  for (PerfRing& ring : rings_) malformed_ += ring.Drain(merger_).malformed;
  batch.events = merger_.Release(batch.horizon);
  batch.malformed = std::exchange(malformed_, 0);
  batch.more = merger_.has_pending();
  return batch;
}

void KernelEvents::Wait(std::chrono::milliseconds timeout) const {
  // Which one it was does not matter: Read() reads them all.
  std::array<epoll_event, 16> ready;
  ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
               static_cast<int>(timeout.count()));
}

}  // namespace pyrometer
