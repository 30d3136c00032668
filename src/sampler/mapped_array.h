// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>

#include "base/system_error.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The memory of an array map, mapped into user space.
template <typename Entry>
class MappedArray {
 public:
  static Result<MappedArray> Map(const bpf_map* map, size_t count) {
    const size_t bytes = sizeof(Entry) * count;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (at == MAP_FAILED) {
      return SystemError(errno, fmt::format("mapping {}", bpf_map__name(map)));
    }
    return MappedArray(static_cast<Entry*>(at), count);
  }

  std::span<Entry> entries() const { return {memory_.get(), memory_.get_deleter().count}; }

 private:
  struct Unmap {
    size_t count = 0;
    void operator()(Entry* at) const { munmap(at, sizeof(Entry) * count); }
  };
  MappedArray(Entry* at, size_t count) : memory_(at, Unmap{count}) {}
  std::unique_ptr<Entry, Unmap> memory_;
};

}  // namespace pyrometer
