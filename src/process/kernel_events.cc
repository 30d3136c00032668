// SPDX-License-Identifier: Apache-2.0
#include "process/kernel_events.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

// More than any machine has; a list that claims more is nonsense.
constexpr unsigned kMaxCpus = 65536;

// "3" or "0-3".
bool AppendRange(std::string_view range, std::vector<unsigned>& cpus) {
  unsigned first = 0;
  const char* const end = range.data() + range.size();
  std::from_chars_result parsed = std::from_chars(range.data(), end, first);
  unsigned last = first;
  if (parsed.ec == std::errc() && parsed.ptr != end) {
    if (*parsed.ptr != '-') return false;
    parsed = std::from_chars(parsed.ptr + 1, end, last);
  }
  if (parsed.ec != std::errc() || parsed.ptr != end) return false;
  if (last < first || last >= kMaxCpus) return false;
  for (unsigned cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return true;
}

}  // namespace

Result<std::vector<unsigned>> ParseCpuList(std::string_view list) {
  std::vector<unsigned> cpus;
  std::string_view rest = list.substr(0, list.find('\n'));
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (!AppendRange(rest.substr(0, comma), cpus)) {
      return Fail(ErrorCode::kMalformed, "not a list of cpus: {}", list);
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return cpus;
}

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

Result<std::vector<unsigned>> KernelEvents::OnlineCpus() const {
  const std::string path = options_.procfs.sys + "/devices/system/cpu/online";
  ASSIGN_OR_RETURN(const std::string list, ReadFile(path));
  return ParseCpuList(list);
}

Result<bool> KernelEvents::Rescan() {
  ASSIGN_OR_RETURN(const std::vector<unsigned> online, OnlineCpus());
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
  const MonotonicTime horizon = MonotonicNow();  // before the first ring is read
  for (PerfRing& ring : rings_) malformed_ += ring.Drain(merger_).malformed;
  batch.events = merger_.Release(horizon);
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
