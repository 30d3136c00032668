// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/system_error.h"
#include "pyrometer/result.h"

namespace pyrometer {

// How much of a BPF ring buffer is unread: its first two pages hold the positions of its reader and
// its writers (kernel/bpf/ringbuf.c). libbpf offers this since 1.3. Any thread.
class RingPositions {
 public:
  static Result<RingPositions> Map(int map_fd) {
    const auto bytes = static_cast<size_t>(2 * ::sysconf(_SC_PAGESIZE));
    void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, map_fd, 0);
    if (at == MAP_FAILED) return SystemError(errno, "mapping the positions of a ring buffer");
    return RingPositions(static_cast<std::byte*>(at), bytes);
  }

  size_t Waiting() const {
    const uint64_t read = At(0);  // read first: it never overtakes the other
    return At(pages_.get_deleter().bytes / 2) - read;
  }

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* at) const { ::munmap(at, bytes); }
  };
  RingPositions(std::byte* at, size_t bytes) : pages_(at, Unmap{bytes}) {}

  uint64_t At(size_t offset) const {
    auto& position = *reinterpret_cast<uint64_t*>(pages_.get() + offset);
    return std::atomic_ref<uint64_t>(position).load(std::memory_order_acquire);
  }

  std::unique_ptr<std::byte, Unmap> pages_;
};

}  // namespace pyrometer
