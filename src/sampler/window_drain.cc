// SPDX-License-Identifier: Apache-2.0
#include "sampler/window_drain.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "sampler/from_abi.h"

namespace pyrometer {
namespace {

// Of the kernel's hash map iteration: a bucket that does not fit makes the call fail with ENOSPC,
// and then the batch is doubled.
constexpr uint32_t kFirstBatch = 128;
constexpr uint32_t kLargestBatch = 1 << 16;

// Calls `take(key, value)` for each entry of a hash map and removes it. After an error the entries
// that were not yet taken are still there.
template <typename Key, typename Value, typename Take>
Result<void> TakeAll(WindowMapReader& reader, int fd, const Take& take) {
  uint32_t batch = kFirstBatch;
  std::vector<Key> keys(batch);
  std::vector<Value> values(batch);
  uint32_t position = 0;
  bool started = false;
  while (true) {
    uint32_t count = batch;
    uint32_t next = 0;
    const int error = reader.TakeBatch(fd, started ? &position : nullptr, &next, keys.data(),
                                       values.data(), &count);
    if (error == ENOSPC && batch < kLargestBatch) {
      batch *= 2;
      keys.resize(batch);
      values.resize(batch);
      continue;
    }
    // What was taken before an error has been removed as well.
    for (uint32_t i = 0; i < count; ++i) take(keys[i], values[i]);
    if (error == ENOENT) return {};
    if (error != 0) return SystemError(error, "reading a window map");
    position = next;
    started = true;
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): its parameters are those of the system call.
int KernelMapReader::TakeBatch(int map, const uint32_t* position, uint32_t* next, void* keys,
                               void* values, uint32_t* count) {
  const uint32_t room = *count;
  // libbpf takes the position as what it may write to, and does not.
  if (bpf_map_lookup_and_delete_batch(map, const_cast<uint32_t*>(position), next, keys, values,
                                      count, nullptr) == 0) {
    return 0;
  }
  const int error = errno;
  // Refused before it began, the call leaves the count as it was.
  if (error != ENOENT && *count >= room) *count = 0;
  return error;
}

template <typename Value>
Result<void> WindowDrain::TakeStacks(int map, uint32_t stack_class) {
  return TakeAll<uint64_t, Value>(reader_, map, [&](uint64_t id, const Value& value) {
    AddStack({stack_class, id}, value.head, {value.frames, std::size(value.frames)});
  });
}

Result<void> WindowDrain::Take(const WindowMaps& maps) {
  RETURN_IF_ERROR(TakeStacks<pyro_stack_small>(maps.stacks[0], 0));
  RETURN_IF_ERROR(TakeStacks<pyro_stack_medium>(maps.stacks[1], 1));
  RETURN_IF_ERROR(TakeStacks<pyro_stack_large>(maps.stacks[2], 2));
  return TakeAll<pyro_sample_key, pyro_sample_count>(
      reader_, maps.counts, [this](const pyro_sample_key& key, const pyro_sample_count& count) {
        AddSample(key, count);
      });
}

void WindowDrain::Add(const pyro_journal_record& record, std::span<const __u64> frames) {
  AddStack({record.key.stack_class, record.key.stack_id}, record.stack.head, frames);
  AddSample(record.key, {.count = 1, .first_ns = record.time_ns, .last_ns = record.time_ns});
}

Window WindowDrain::Finish() {
  stack_by_key_.clear();
  sample_by_key_.clear();
  return std::exchange(window_, {});
}

void WindowDrain::AddStack(const StackKey& key, const pyro_stack_head& head,
                           std::span<const __u64> frames) {
  const auto number = static_cast<uint32_t>(window_.stacks.size());
  if (!stack_by_key_.try_emplace(key, number).second) return;
  Stack stack;
  stack.first_frame = static_cast<uint32_t>(window_.frames.size());
  stack.kernel_frames = static_cast<uint16_t>(std::min<size_t>(head.kernel_frames, frames.size()));
  stack.user_frames = static_cast<uint16_t>(
      std::min<size_t>(head.user_frames, frames.size() - stack.kernel_frames));
  static_assert(kStackEnds == PYRO_STACK_ENDS);
  stack.end = static_cast<StackEnd>(head.user_end);
  AppendKernelFrames(window_.frames, frames.first(stack.kernel_frames));
  for (const __u64 frame : frames.subspan(stack.kernel_frames, stack.user_frames)) {
    window_.frames.emplace_back(frame);
  }
  window_.stacks.push_back(stack);
}

void WindowDrain::AddSample(const pyro_sample_key& key, const pyro_sample_count& count) {
  const MonotonicTime first(count.first_ns);
  const MonotonicTime last(std::max(count.first_ns, count.last_ns));
  const auto number = static_cast<uint32_t>(window_.samples.size());
  const auto [known, is_new] = sample_by_key_.try_emplace(std::bit_cast<SampleKey>(key), number);
  if (!is_new) {
    Sample& sample = window_.samples[known->second];
    sample.count += count.count;
    sample.first_seen = std::min(sample.first_seen, first);
    sample.last_seen = std::max(sample.last_seen, last);
    return;
  }
  window_.samples.push_back({.process = ToProcessKey(key),
                             .exec = ExecId(key.exec_id),
                             .comm = ToText(key.comm),
                             .thread = ToText(key.thread),
                             .stack = StackOf(key),
                             .count = count.count,
                             .first_seen = first,
                             .last_seen = last,
                             .event = ToEventKind(key)});
}

uint32_t WindowDrain::StackOf(const pyro_sample_key& key) {
  const auto stack = stack_by_key_.find({key.stack_class, key.stack_id});
  return stack != stack_by_key_.end() ? stack->second : MissingStack();
}

// A count whose stack is not there cannot happen, as both go to the same half; if it does, the
// ticks are kept with a stack that says that it is cut.
uint32_t WindowDrain::MissingStack() {
  window_.stacks.push_back({.first_frame = static_cast<uint32_t>(window_.frames.size()),
                            .kernel_frames = 0,
                            .user_frames = 0,
                            .end = StackEnd::kUnreadable});
  return static_cast<uint32_t>(window_.stacks.size() - 1);
}

}  // namespace pyrometer
