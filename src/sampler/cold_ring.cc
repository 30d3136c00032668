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

ColdSample Of(const pyro_sample_key& key, uint64_t time_ns) {
  ColdSample sample;
  sample.process = ToProcessKey(key);
  sample.exec = ExecId(key.exec_id);
  sample.comm = ToText(key.comm);
  sample.thread = ToText(key.thread);
  sample.when = MonotonicTime(time_ns);
  sample.event = ToEventKind(key);
  return sample;
}

ColdSample FromAbi(const pyro_cold_sample& record, std::span<const std::byte> stack) {
  ColdSample sample = Of(record.key, record.time_ns);
  sample.exec_pages = record.exec_pages;
  sample.pc = Address(record.pc);
  sample.after_call = record.after_call != 0;
  sample.stack = {stack.begin(), stack.end()};
  sample.stack_holes = record.stack_holes;
  std::ranges::copy(record.registers, sample.registers.begin());
  const size_t frames = std::min<size_t>(record.kernel_frames, std::size(record.kernel_stack));
  AppendKernelFrames(sample.kernel_frames, {record.kernel_stack, frames});
  return sample;
}

// `frames`: all that the record has.
ColdSample FromAbi(const pyro_unwound_sample& record, std::span<const __u64> frames) {
  ColdSample sample = Of(record.key, record.time_ns);
  const pyro_stack_head& head = record.stack.head;
  const size_t kernel_frames = std::min<size_t>(head.kernel_frames, frames.size());
  AppendKernelFrames(sample.kernel_frames, frames.first(kernel_frames));
  const auto user = frames.subspan(kernel_frames);
  ColdSample::Unwound unwound;
  unwound.end = static_cast<StackEnd>(head.user_end);
  for (const __u64 frame : user.first(std::min<size_t>(head.user_frames, user.size()))) {
    unwound.frames.emplace_back(frame);
  }
  sample.unwound = std::move(unwound);
  return sample;
}

int OnRecord(void* taken, void* data, size_t size) {
  constexpr size_t kHead = offsetof(pyro_unwound_sample, stack.frames);
  if (size < kHead) return 0;
  if (static_cast<const pyro_sample_key*>(data)->stack_class == PYRO_COLD_UNWOUND) {
    const auto& record = *static_cast<const pyro_unwound_sample*>(data);
    const size_t frames = (size - kHead) / sizeof(__u64);
    static_cast<std::vector<ColdSample>*>(taken)->push_back(
        FromAbi(record, {record.stack.frames, frames}));
    return 0;
  }
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
