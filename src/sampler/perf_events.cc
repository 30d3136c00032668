// SPDX-License-Identifier: Apache-2.0
#include "sampler/perf_events.h"

#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {
namespace {

// A clock counts nanoseconds.
uint64_t PeriodOf(const SampledEvent& event, Hertz frequency) {
  return event.counted() ? event.period : static_cast<uint64_t>(frequency.Period().count());
}

Result<UniqueFd> OpenEvent(const EventFacts& event, uint32_t cpu, uint64_t period) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = event.perf_type;
  attr.config = event.perf_config;
  attr.sample_period = period;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
  attr.disabled = 1;  // attaching enables it
  UniqueFd fd(static_cast<int>(
      syscall(SYS_perf_event_open, &attr, -1, static_cast<int>(cpu), -1, PERF_FLAG_FD_CLOEXEC)));
  if (fd) return fd;
  const int error = errno;
  if (error == EACCES || error == EPERM) {
    return Fail(ErrorCode::kPermission,
                "perf_event_open on cpu {}: permission denied; run as root, or grant CAP_PERFMON "
                "and CAP_BPF (and CAP_SYS_ADMIN, if kernel.perf_event_paranoid is above 2)",
                cpu);
  }
  return SystemError(error, fmt::format("perf_event_open on cpu {}", cpu));
}

}  // namespace

void PerfEvents::LinkDeleter::operator()(bpf_link* link) const {
  bpf_link__destroy(link);
}

PerfEvents::PerfEvents(bpf_program* program, const Options& options)
    : program_(program),
      event_(options.event),
      procfs_(options.procfs),
      frequency_(options.event.counted() ? Hertz{} : options.frequency),
      period_(PeriodOf(options.event, options.frequency)) {}

PerfEvents::~PerfEvents() {
  Stop();
}

Result<void> PerfEvents::FollowCpus() {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> cpus, OnlineCpus(procfs_));
  const absl::MutexLock lock(&mutex_);
  LetGo(cpus);
  std::optional<Error> failure;
  for (const uint32_t cpu : cpus) {
    if (events_.contains(cpu)) continue;
    Result<CpuEvent> event = Open(cpu);
    if (event) {
      events_.emplace(cpu, *std::move(event));
    } else {
      // It may have gone since the look at the list; what else is wrong may be over next time.
      ++failures_;
      failure = std::move(event).error();
    }
  }
  if (!events_.empty()) return {};
  if (failure && failure->code() == ErrorCode::kPermission) return *std::move(failure);
  return Fail(ErrorCode::kUnsupported, "none of the {} online CPUs can be sampled{}{}", cpus.size(),
              failure ? ": " : "", failure ? failure->message() : "");
}

void PerfEvents::LetGo(const std::vector<uint32_t>& online) {
  for (auto it = events_.begin(); it != events_.end();) {
    const bool is_online = std::ranges::find(online, it->first) != online.end();
    const bool works = is_online && !it->second.stopped.HasStopped(it->second.fd);
    if (!works) Close(it->second);
    it = works ? std::next(it) : events_.erase(it);
  }
}

Result<PerfEvents::CpuEvent> PerfEvents::Open(uint32_t cpu) const {
  ASSIGN_OR_RETURN(UniqueFd fd, OpenEvent(FactsOf(event_.kind), cpu, period_));
  CpuEvent event;
  event.link.reset(bpf_program__attach_perf_event(program_, fd.get()));
  if (!event.link) {
    return SystemError(errno, fmt::format("attaching the sampling program on cpu {}", cpu));
  }
  event.fd = fd.Release();  // the link closes it
  return event;
}

// Each period that the event has counted is a tick.
uint64_t PerfEvents::DueOn(const CpuEvent& event, uint64_t counted) const {
  if (event_.counted()) return 0;
  return event.due_before + (counted - std::min(counted, event.counted_before)) / period_;
}

void PerfEvents::Close(CpuEvent& event) {
  ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
  due_on_closed_ += DueOn(event, EventReading::Of(event.fd).value);
  event.link.reset();
}

void PerfEvents::Stop() {
  const absl::MutexLock lock(&mutex_);
  for (auto& [cpu, event] : events_) Close(event);
  events_.clear();
}

void PerfEvents::Pause() {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [cpu, event] : events_) ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
}

void PerfEvents::Resume(Hertz frequency) {
  const absl::MutexLock lock(&mutex_);
  const uint64_t period = PeriodOf(event_, frequency);
  for (auto it = events_.begin(); it != events_.end();) {
    const bool works = ChangePeriod(it->second, period);
    if (!works) Close(it->second);  // FollowCpus opens another
    failures_ += works ? 0 : 1;
    it = works ? std::next(it) : events_.erase(it);
  }
  if (!event_.counted()) frequency_ = frequency;
  period_ = period;
}

// The kernel begins a whole new period (perf_event.c: __perf_event_period).
bool PerfEvents::ChangePeriod(CpuEvent& event, uint64_t period) {
  const uint64_t counted = EventReading::Of(event.fd).value;
  if (ioctl(event.fd, PERF_EVENT_IOC_PERIOD, &period) != 0) return false;
  event.due_before = DueOn(event, counted);
  event.counted_before = counted;
  return ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

Hertz PerfEvents::frequency() const {
  const absl::MutexLock lock(&mutex_);
  return frequency_;
}

uint64_t PerfEvents::TicksPerSecond() const {
  if (event_.counted()) return std::numeric_limits<uint64_t>::max();
  const absl::MutexLock lock(&mutex_);
  return events_.size() * (1'000'000'000 / period_ + 1);
}

uint64_t PerfEvents::DueTicks() const {
  const absl::MutexLock lock(&mutex_);
  uint64_t due = due_on_closed_;
  for (const auto& [cpu, event] : events_) due += DueOn(event, EventReading::Of(event.fd).value);
  return due;
}

size_t PerfEvents::size() const {
  const absl::MutexLock lock(&mutex_);
  return events_.size();
}

uint64_t PerfEvents::failures() const {
  const absl::MutexLock lock(&mutex_);
  return failures_;
}

}  // namespace pyrometer
