// SPDX-License-Identifier: Apache-2.0
#include "process/perf_ring.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/system_error.h"
#include "process/perf_record.h"

namespace pyrometer {
namespace {

// The longest record asked for: MMAP2 with a path of PATH_MAX, its fixed fields and the sample's
// identity, rounded up. A ring with less room than this may have dropped a record. The kernel says
// so (PERF_RECORD_LOST) only in front of the next record of the same CPU, and a CPU that has gone
// idle may not have one for a long time.
constexpr size_t kLongestRecord = size_t{PATH_MAX} + 512;

perf_event_attr SidebandAttributes(uint32_t wakeup_bytes) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = kSampleIdFields;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
  attr.sample_id_all = 1;
  attr.disabled = 1;
  attr.mmap = 1;  // without mmap_data: executable mappings only
  attr.mmap2 = 1;
  attr.build_id = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.ksymbol = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = wakeup_bytes;
  return attr;
}

// Such an event would wait in the merger until its time comes. The kernel's clock in records may
// be a little ahead of clock_gettime(), but not by that much.
bool IsFromTheFuture(const ProcessEvent& event, const Clock& clock) {
  constexpr uint64_t kTolerance = 1'000'000'000;
  return When(event).value() > clock.Now().value() + kTolerance;
}

int OpenEvent(perf_event_attr& attr, unsigned cpu) {
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attr, -1, static_cast<int>(cpu), -1, PERF_FLAG_FD_CLOEXEC));
}

Error OpenError(int errnum, unsigned cpu) {
  if (errnum == ENODEV) {  // the CPU went offline
    return Fail(ErrorCode::kNotFound, "perf_event_open on cpu {}: the cpu is offline", cpu);
  }
  Error error =
      SystemError(errnum, fmt::format("perf_event_open of process events on cpu {}", cpu));
  if (error.code() != ErrorCode::kPermission) return error;
  return Fail(ErrorCode::kPermission,
              "{}; run as root, or grant CAP_PERFMON (and CAP_SYS_ADMIN, if "
              "kernel.perf_event_paranoid is above 2)",
              error.message());
}

}  // namespace

void PerfRing::Unmap::operator()(perf_event_mmap_page* page) const {
  ::munmap(page, bytes);
}

PerfRing::PerfRing(unsigned cpu, UniqueFd fd, Pages pages, size_t ring_bytes)
    : cpu_(cpu), fd_(std::move(fd)), pages_(std::move(pages)), ring_bytes_(ring_bytes) {}

Result<PerfRing> PerfRing::Open(unsigned cpu, const Options& options) {
  perf_event_attr attr = SidebandAttributes(options.wakeup_bytes);
  UniqueFd fd(OpenEvent(attr, cpu));
  if (!fd && errno == EINVAL) {
    attr.build_id = 0;  // unknown before 5.12
    fd.Reset(OpenEvent(attr, cpu));
  }
  if (!fd) return OpenError(errno, cpu);
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t min_pages = std::bit_ceil(std::max(options.min_bytes / page, size_t{1}));
  size_t pages = std::bit_ceil(std::max(options.ring_bytes / page, min_pages));
  Result<Pages> ring = MapRing(fd.get(), pages * page);
  while (!ring && pages > min_pages) {
    pages /= 2;
    ring = MapRing(fd.get(), pages * page);
  }
  if (!ring) return std::move(ring).error();
  if (::ioctl(fd.get(), PERF_EVENT_IOC_ENABLE, 0) < 0) {
    return SystemError(errno, fmt::format("enabling process events on cpu {}", cpu));
  }
  return PerfRing(cpu, std::move(fd), *std::move(ring), pages * page);
}

Result<PerfRing::Pages> PerfRing::MapRing(int fd, size_t ring_bytes) {
  const size_t bytes = ring_bytes + static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return SystemError(errno, "mapping a ring for process events (see perf_event_mlock_kb)");
  }
  return Pages(static_cast<perf_event_mmap_page*>(memory), Unmap{bytes});
}

PerfRing::Tally PerfRing::Drain(EventMerger& merger, const Clock& clock) {
  Tally tally;
  const uint64_t head = __atomic_load_n(&pages_->data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = pages_->data_tail;  // only we write it
  if (head - tail + kLongestRecord > ring_bytes_) merger.Add(LostEvent{clock.Now(), 0});
  while (tail < head) {
    perf_event_header header;
    std::memcpy(&header, Bytes(tail, sizeof(header)).data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail) {
      // The ring makes no sense: skip all of it, as if the kernel had lost it.
      ++tally.malformed;
      merger.Add(LostEvent{clock.Now(), 1});
      tail = head;
      break;
    }
    ++tally.records;
    Result<std::optional<ProcessEvent>> event = ParsePerfRecord(Bytes(tail, header.size));
    if (!event || (event->has_value() && IsFromTheFuture(**event, clock))) {
      ++tally.malformed;
    } else if (event->has_value()) {
      merger.Add(**std::move(event));
    }
    tail += header.size;
  }
  __atomic_store_n(&pages_->data_tail, tail, __ATOMIC_RELEASE);
  return tally;
}

void PerfRing::Discard() {
  const uint64_t head = __atomic_load_n(&pages_->data_head, __ATOMIC_ACQUIRE);
  __atomic_store_n(&pages_->data_tail, head, __ATOMIC_RELEASE);
}

bool PerfRing::HasUnread() const {
  return __atomic_load_n(&pages_->data_head, __ATOMIC_ACQUIRE) !=
         __atomic_load_n(&pages_->data_tail, __ATOMIC_ACQUIRE);
}

std::span<const std::byte> PerfRing::Bytes(uint64_t position, size_t size) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const std::byte* data = reinterpret_cast<const std::byte*>(pages_.get()) + page;
  const size_t offset = position & (ring_bytes_ - 1);
  if (offset + size <= ring_bytes_) return {data + offset, size};
  const size_t first = ring_bytes_ - offset;
  wrapped_.assign(data + offset, data + ring_bytes_);
  wrapped_.insert(wrapped_.end(), data, data + (size - first));
  return wrapped_;
}

}  // namespace pyrometer
