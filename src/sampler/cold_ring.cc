// SPDX-License-Identifier: Apache-2.0
#include "sampler/cold_ring.h"

#include <bpf/libbpf.h>

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
                    .event = ToEventKind(key),
                    .exec_pages = record.exec_pages,
                    .kernel_frames = {},
                    .pc = Address(record.pc),
                    .after_call = record.after_call != 0,
                    .stack = {stack.begin(), stack.end()},
                    .stack_holes = record.stack_holes};
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

Result<std::unique_ptr<ColdRing>> ColdRing::Open(int map_fd) {
  ASSIGN_OR_RETURN(RingPositions positions, RingPositions::Map(map_fd));
  ASSIGN_OR_RETURN(Wakeup wakeup, Wakeup::Open());
  std::unique_ptr<ColdRing> ring(new ColdRing(std::move(positions), std::move(wakeup)));
  ring->ring_.reset(ring_buffer__new(map_fd, OnRecord, &ring->taken_, nullptr));
  if (!ring->ring_) return SystemError(errno, "opening the ring buffer of cold samples");
  return ring;
}

std::vector<ColdSample> ColdRing::Take() {
  ring_buffer__consume(ring_.get());
  return std::exchange(taken_, {});
}

void ColdRing::Wait(std::chrono::milliseconds most) {
  wakeup_.Wait(most, ring_buffer__epoll_fd(ring_.get()));
}

}  // namespace pyrometer
