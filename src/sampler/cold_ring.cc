// SPDX-License-Identifier: Apache-2.0
#include "sampler/cold_ring.h"

#include <bpf/libbpf.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/system_error.h"
#include "sampler/from_abi.h"

namespace pyrometer {
namespace {

ColdSample FromAbi(const pyro_cold_sample& record, std::span<const std::byte> stack) {
  const pyro_sample_key& key = record.key;
  ColdSample sample{.process = ToProcessKey(key),
                    .exec = ExecId(key.exec_id),
                    .comm = ToText(key.comm),
                    .thread = ToText(key.thread),
                    .when = MonotonicTime(record.time_ns),
                    .exec_pages = record.exec_pages,
                    .kernel_frames = {},
                    .pc = Address(record.pc),
                    .after_call = record.after_call != 0,
                    .stack = {stack.begin(), stack.end()}};
  std::ranges::copy(record.registers, sample.registers.begin());
  const size_t frames = std::min<size_t>(record.kernel_frames, std::size(record.kernel_stack));
  AppendKernelFrames(sample.kernel_frames, {record.kernel_stack, frames});
  return sample;
}

int OnRecord(void* taken, void* data, size_t size) {
  if (size < sizeof(pyro_cold_sample)) return 0;
  const auto& record = *static_cast<const pyro_cold_sample*>(data);
  const std::span<const std::byte> stack(
      static_cast<const std::byte*>(data) + sizeof(record),
      std::min<size_t>(record.stack_bytes, size - sizeof(record)));
  static_cast<std::vector<ColdSample>*>(taken)->push_back(FromAbi(record, stack));
  return 0;
}

}  // namespace

void ColdRing::Close::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

Result<ColdRing> ColdRing::Open(int map_fd) {
  ColdRing ring;
  ring.ring_.reset(ring_buffer__new(map_fd, OnRecord, ring.taken_.get(), nullptr));
  if (!ring.ring_) return SystemError(errno, "opening the ring buffer of cold samples");
  ring.woken_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ring.woken_) return SystemError(errno, "eventfd");
  return ring;
}

std::vector<ColdSample> ColdRing::Take() {
  ring_buffer__consume(ring_.get());
  return std::exchange(*taken_, {});
}

void ColdRing::Wait(std::chrono::milliseconds most) {
  pollfd waits[] = {{.fd = ring_buffer__epoll_fd(ring_.get()), .events = POLLIN, .revents = 0},
                    {.fd = woken_.get(), .events = POLLIN, .revents = 0}};
  ::poll(waits, std::size(waits), static_cast<int>(most.count()));
  eventfd_t wakes = 0;
  if (waits[1].revents != 0) ::eventfd_read(woken_.get(), &wakes);
}

void ColdRing::Wake() {
  ::eventfd_write(woken_.get(), 1);
}

}  // namespace pyrometer
