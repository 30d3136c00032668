// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace pyrometer {

// Takes bytes one after the other.
class ByteWriter {
 public:
  virtual ~ByteWriter() = default;

  // False if there is no room for them, or for any before.
  virtual bool Put(std::span<const std::byte> bytes) = 0;
};

}  // namespace pyrometer
