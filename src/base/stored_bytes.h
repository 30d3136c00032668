// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pyrometer {

// Bytes that stay as they are, and are kept where they cost little memory. Thread-safe.
class StoredBytes {
 public:
  virtual ~StoredBytes() = default;

  // Reads out.size() bytes at `offset`. False if they cannot be read.
  virtual bool Read(uint64_t offset, std::span<std::byte> out) const = 0;

  virtual uint64_t size() const = 0;
  // Of these: in memory, and in the spill file, there in whole blocks.
  virtual size_t in_memory() const = 0;
  virtual uint64_t spilled() const = 0;
};

}  // namespace pyrometer
