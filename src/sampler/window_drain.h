// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/abi/sampler.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Descriptors of one half of the window maps.
struct WindowMaps {
  int counts = -1;
  std::array<int, PYRO_STACK_CLASSES> stacks{};  // small, medium, large
};

// What a drain needs of the kernel.
class WindowMapReader {
 public:
  virtual ~WindowMapReader() = default;

  // Removes entries from a hash map, from `position` (null: the beginning) to `next`. `count` is
  // the room on entry and the number taken on return, also after an error. Returns 0 or an errno:
  // ENOENT when these were the last entries, ENOSPC if there is too little room for any.
  virtual int TakeBatch(int map, const uint32_t* position, uint32_t* next, void* keys, void* values,
                        uint32_t* count) = 0;
};

class KernelMapReader : public WindowMapReader {
 public:
  int TakeBatch(int map, const uint32_t* position, uint32_t* next, void* keys, void* values,
                uint32_t* count) override;
};

// Makes a window from the contents of the window maps.
class WindowDrain {
 public:
  // `reader` must outlive this.
  explicit WindowDrain(WindowMapReader& reader) : reader_(reader) {}

  // Empties one half, which no program writes to any more. After an error nothing is lost: the next
  // call continues.
  // Return addresses in kernel frames become call addresses, as user frames are already.
  Result<void> Take(const WindowMaps& maps);

  // A sample of a journal; `frames` are all that it has.
  void Add(const pyro_journal_record& record, std::span<const __u64> frames);

  // The window taken since the last call; the caller sets its times.
  Window Finish();

 private:
  using StackKey = std::pair<uint32_t, uint64_t>;  // its class, and its id there

  // Words of a sample key, which has no padding.
  using SampleKey = std::array<uint64_t, sizeof(pyro_sample_key) / sizeof(uint64_t)>;

  template <typename Value>
  Result<void> TakeStacks(int map, uint32_t stack_class);
  void AddStack(const StackKey& key, const pyro_stack_head& head, std::span<const __u64> frames);
  void AddSample(const pyro_sample_key& key, const pyro_sample_count& count);
  uint32_t StackOf(const pyro_sample_key& key);
  uint32_t MissingStack();

  WindowMapReader& reader_;
  Window window_;
  absl::flat_hash_map<StackKey, uint32_t> stack_by_key_;
  absl::flat_hash_map<SampleKey, uint32_t> sample_by_key_;
};

}  // namespace pyrometer
