// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "binary/byte_source.h"

namespace pyrometer {

// The strings of a section, read where somebody asks for one: units refer to strings all over it.
class DwarfStrings {
 public:
  static constexpr size_t kChunk = size_t{64} << 10;
  static constexpr size_t kMostChunks = 512;  // 32 MiB are remembered
  static constexpr size_t kLongest = 2 * kChunk;

  // `section` must outlive this.
  explicit DwarfStrings(const ByteSource& section);

  // The string at `offset`; "" if there is none. Valid until the next call.
  std::string_view At(uint64_t offset);

 private:
  struct Chunk {
    uint64_t number = ~uint64_t{0};
    std::vector<char> bytes;
  };

  const Chunk* ChunkOf(uint64_t offset);

  const ByteSource& section_;
  std::vector<Chunk> chunks_;  // each number has one place
  std::string joined_;         // of more than one chunk
};

}  // namespace pyrometer
