// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "pyrometer/result.h"

struct bpf_map;

namespace pyrometer {

// One of the kernel's maps wanted_*: keys, each with a bit mask of the filter generations that want
// it. The fork and exit programs may change it concurrently.
class GenerationSet {
 public:
  explicit GenerationSet(const bpf_map* map);

  // `key`: as many bytes as the map's keys have. Errors: kExhausted if the map is full.
  Result<void> Add(const void* key, uint32_t generation);

  // Removes what no generation in the mask `generations` wants. False if the map cannot be read
  // now.
  bool Keep(uint8_t generations) const;

 private:
  int fd_;
  uint32_t key_size_;
  uint32_t max_entries_;
  const char* name_;
};

}  // namespace pyrometer
