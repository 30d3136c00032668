// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/event_reading.h"
#include "base/unique_fd.h"
#include "process/event_merger.h"
#include "pyrometer/result.h"

namespace pyrometer {

// One CPU's event stream: a dummy software event and the ring the kernel writes its records to.
// Thread-compatible.
class PerfRing {
 public:
  struct Options {
    size_t ring_bytes = 0;
    uint32_t wakeup_bytes = 0;            // unread bytes at which the fd becomes readable
    size_t min_bytes = size_t{64} << 10;  // of the ring
  };
  struct Tally {
    uint64_t records = 0;
    uint64_t malformed = 0;
  };

  // Halves the ring, down to the minimum, where the limit on locked memory allows no more; does
  // without build ids before Linux 5.12. Errors: kPermission, kUnsupported, kNotFound: no such CPU.
  static Result<PerfRing> Open(unsigned cpu, const Options& options);

  // Moves every record that is there into `merger`. `clock`: CLOCK_MONOTONIC, as the records'.
  Tally Drain(EventMerger& merger, const Clock& clock);

  // Discards everything unread.
  void Discard();

  // True if no more records can come: the CPU went offline since the last call, even if it is back.
  bool HasStopped() { return stopped_.HasStopped(fd_.get()); }

  // True if there is an unread record. Any thread.
  bool HasUnread() const;

  int fd() const { return fd_.get(); }
  unsigned cpu() const { return cpu_; }
  size_t ring_bytes() const { return ring_bytes_; }

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(perf_event_mmap_page* page) const;
  };
  using Pages = std::unique_ptr<perf_event_mmap_page, Unmap>;

  PerfRing(unsigned cpu, UniqueFd fd, Pages pages, size_t ring_bytes);
  static Result<Pages> MapRing(int fd, size_t ring_bytes);
  // `size` bytes at `position`, in one piece even where the ring wraps.
  std::span<const std::byte> Bytes(uint64_t position, size_t size);

  unsigned cpu_;
  UniqueFd fd_;
  Pages pages_;
  size_t ring_bytes_;
  std::vector<std::byte> wrapped_;
  StoppedEvent stopped_;
};

}  // namespace pyrometer
