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

// A digest that says for practical purposes what was digested: who knows neither the key nor any
// digest cannot make two inputs of one digest but by chance, once in 2^64 pairs.
//
// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012), of what NH (Black et al.,
// "UMAC: Fast and Secure Message Authentication", 1999) makes of each whole block, of 64-bit words
// here, and of what is left. So it is SipHash of what is shorter than a block.
class KeyedDigest {
 public:
  struct Key {
    uint64_t low = 0;
    uint64_t high = 0;
  };
  static constexpr size_t kBlock = 512;  // bytes

  // From the kernel's random numbers.
  static Key RandomKey();

  explicit KeyedDigest(const Key& key);

  void Add(std::span<const std::byte> bytes);
  void Add(uint64_t number);
  // To be called once, at the end.
  Digest Finish();

 private:
  using State = std::array<uint64_t, 4>;
  using BlockKey = std::array<uint64_t, kBlock / sizeof(uint64_t)>;

  void AddBlock(std::span<const std::byte, kBlock> block);
  static BlockKey BlockKeyOf(const Key& key);

  Key key_;
  State state_;
  BlockKey block_key_{};  // once size_ is that of a block or more
  std::array<std::byte, kBlock> rest_{};
  size_t rest_size_ = 0;  // less than a block
  uint64_t size_ = 0;
};

}  // namespace pyrometer
