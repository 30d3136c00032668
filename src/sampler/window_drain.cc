// SPDX-License-Identifier: Apache-2.0
#include "sampler/window_drain.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/system_error.h"
#include "sampler/from_abi.h"

namespace pyrometer {
namespace {

// Of the kernel's hash map iteration: a bucket that does not fit makes the call fail with ENOSPC,
// and then the batch is doubled.
constexpr uint32_t kFirstBatch = 128;
constexpr uint32_t kLargestBatch = 1 << 16;

// Calls `take(key, value)` for each entry of a hash map and removes it.
template <typename Key, typename Value, typename Take>
Result<void> TakeAll(int fd, const Take& take) {
  uint32_t batch = kFirstBatch;
  std::vector<Key> keys(batch);
  std::vector<Value> values(batch);
  uint32_t position = 0;
  bool started = false;
  while (true) {
    uint32_t count = batch;
    uint32_t next = 0;
    const int error = bpf_map_lookup_and_delete_batch(fd, started ? &position : nullptr, &next,
                                                      keys.data(), values.data(), &count, nullptr)
                          ? errno
                          : 0;
    if (error == ENOSPC && batch < kLargestBatch) {
      batch *= 2;
      keys.resize(batch);
      values.resize(batch);
      continue;
    }
    if (error != 0 && error != ENOENT) return SystemError(error, "reading a window map");
    for (uint32_t i = 0; i < count; ++i) take(keys[i], values[i]);
    if (error == ENOENT) return {};
    position = next;
    started = true;
  }
}

struct StackKey {
  uint32_t stack_class;
  uint64_t id;
  bool operator==(const StackKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackKey& k) {
    return H::combine(std::move(h), k.stack_class, k.id);
  }
};

class WindowAssembly {
 public:
  template <typename Value>
  Result<void> TakeStacks(int fd, uint32_t stack_class) {
    return TakeAll<uint64_t, Value>(fd, [&](uint64_t id, const Value& value) {
      by_key_[{stack_class, id}] = static_cast<uint32_t>(window_.stacks.size());
      AddStack(value.head, value.frames, std::size(value.frames));
    });
  }

  Result<void> TakeCounts(int fd) {
    return TakeAll<pyro_sample_key, pyro_sample_count>(
        fd, [this](const pyro_sample_key& key, const pyro_sample_count& count) {
          AddSample(key, count);
        });
  }

  Window Finish() && { return std::move(window_); }

 private:
  void AddStack(const pyro_stack_head& head, const __u64* frames, size_t room) {
    Stack stack;
    stack.first_frame = static_cast<uint32_t>(window_.frames.size());
    stack.kernel_frames = static_cast<uint16_t>(std::min<size_t>(head.kernel_frames, room));
    stack.user_frames =
        static_cast<uint16_t>(std::min<size_t>(head.user_frames, room - stack.kernel_frames));
    static_assert(kStackEnds == PYRO_STACK_ENDS);
    stack.end = static_cast<StackEnd>(head.user_end);
    AppendKernelFrames(window_.frames, {frames, stack.kernel_frames});
    for (uint32_t i = 0; i < stack.user_frames; ++i) {
      window_.frames.emplace_back(frames[stack.kernel_frames + i]);
    }
    window_.stacks.push_back(stack);
  }

  void AddSample(const pyro_sample_key& key, const pyro_sample_count& count) {
    const auto stack = by_key_.find({key.stack_class, key.stack_id});
    window_.samples.push_back(
        {.process = ToProcessKey(key),
         .exec = ExecId(key.exec_id),
         .comm = ToText(key.comm),
         .thread = ToText(key.thread),
         .stack = stack != by_key_.end() ? stack->second : MissingStack(),
         .count = count.count,
         .first_seen = MonotonicTime(count.first_ns),
         .last_seen = MonotonicTime(std::max(count.first_ns, count.last_ns))});
  }

  // A count whose stack is not there cannot happen, as both go to the same half; if it does, the
  // ticks are kept with a stack that says that it is cut.
  uint32_t MissingStack() {
    window_.stacks.push_back({.first_frame = static_cast<uint32_t>(window_.frames.size()),
                              .kernel_frames = 0,
                              .user_frames = 0,
                              .end = StackEnd::kUnreadable});
    return static_cast<uint32_t>(window_.stacks.size() - 1);
  }

  Window window_;
  absl::flat_hash_map<StackKey, uint32_t> by_key_;
};

}  // namespace

Result<Window> DrainMaps(const WindowMaps& maps) {
  WindowAssembly window;
  RETURN_IF_ERROR(window.TakeStacks<pyro_stack_small>(maps.stacks[0], 0));
  RETURN_IF_ERROR(window.TakeStacks<pyro_stack_medium>(maps.stacks[1], 1));
  RETURN_IF_ERROR(window.TakeStacks<pyro_stack_large>(maps.stacks[2], 2));
  RETURN_IF_ERROR(window.TakeCounts(maps.counts));
  return std::move(window).Finish();
}

}  // namespace pyrometer
